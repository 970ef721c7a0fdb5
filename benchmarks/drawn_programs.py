"""Programs of a few lines that call the packages of ``packages.txt`` as their users do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from package_programs import down, leaf
from torch import nn

PROGRAMS: dict[str, Callable[[], None]] = {}


def program(run):
    """Take a program under its distribution's name, which its own name spells with underscores."""
    PROGRAMS[run.__name__.replace("_", "-")] = run
    return run


def shortest():
    """An optimisation model without a solver: the best two of five."""
    from pyepo.model.opt import optModel

    class Best(optModel):
        def _getModel(self):  # noqa: N802
            return None, range(5)

        def setObj(self, c):  # noqa: N802
            self.costs = torch.as_tensor(c, dtype=torch.float64).detach()

        def solve(self):
            solution = torch.zeros(5)
            solution[self.costs.topk(2, largest=False).indices] = 1
            return solution.numpy(), float(self.costs.topk(2, largest=False).values.sum())

    return Best()


@program
def pyepo():
    from pyepo import func

    model, costs = shortest(), torch.rand(3, 5)
    solutions = torch.zeros(3, 5).scatter(1, costs.topk(2, 1, largest=False).indices, 1)
    values = (solutions * costs).sum(1, keepdim=True)
    down(func.SPOPlus(model)(leaf(3, 5), costs, solutions, values))
    for kind in (
        func.blackboxOpt,
        func.negativeIdentity,
        func.perturbedOpt,
        func.implicitMLE,
        func.adaptiveImplicitMLE,
        func.regularizedFrankWolfeOpt,
    ):
        down(kind(model)(leaf(3, 5)))
    for kind in (func.perturbedFenchelYoung, func.regularizedFrankWolfeFenchelYoung):
        down(kind(model)(leaf(3, 5), solutions))


@program
def routing_transformer():
    from routing_transformer import RoutingTransformer

    model = RoutingTransformer(dim=16, heads=2, depth=2, max_seq_len=32, window_size=8, reversible=True)
    out, loss = model(leaf(1, 32, 16))
    down(out, loss)


@program
def torchlie():
    from torchlie.functional import SE3, SO3

    for group, size in ((SO3, 3), (SE3, 6)):
        a, b = group.exp(leaf(2, size, scale=0.5)), group.exp(leaf(2, size, scale=0.5))
        point = leaf(2, 3)
        down(
            group.log(group.compose(a, group.inv(b))),
            group.adj(a),
            group.transform(a, point),
            group.untransform(b, point),
        )
        a = group.exp(leaf(2, size, scale=0.5))
        down(group.hat(leaf(2, size)), group.vee(group.hat(leaf(2, size))), group.lift(leaf(2, 4, size)))
        down(group.project(leaf(2, 4, *a.shape[-2:])), group.left_project(a, leaf(2, 4, *a.shape[-2:])))
    down(SO3.quaternion_to_rotation(nn.functional.normalize(leaf(2, 4), dim=-1)))


@program
def hypll():
    from hypll.manifolds.poincare_ball import Curvature, PoincareBall
    from hypll.tensors import ManifoldTensor

    ball = PoincareBall(Curvature(1.0))
    points = ManifoldTensor((0.3 * torch.randn(2, 4, 3)).clamp(-0.5, 0.5).requires_grad_(), ball, man_dim=-1)
    down(ball.frechet_mean(points, batch_dim=1).tensor)


@program
def nni():
    from types import SimpleNamespace

    from nni.algorithms.feature_engineering.gradient_selector import learnability
    from nni.compression.base import apply_method as apply
    from nni.compression.base.target_space import TargetType
    from nni.nas.oneshot.pytorch.supermodule.proxyless import _ProxylessFunction

    space = SimpleNamespace(qmax=7, qmin=-8, _scaler=None, type=TargetType.OUTPUT)
    space.scale, space.zero_point = torch.tensor(0.2, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    down(apply.lsq_clamp_round(leaf(4, 6), space), apply.lsq_plus_clamp_round(leaf(4, 6), space))
    space.scale, space.zero_point = torch.tensor(0.2), torch.tensor(0.0)
    for method in (apply.BNNClampRound, apply.ClampRound, apply.QATClampRound):
        down(method.apply(leaf(4, 6) * 1, space))
    down(apply.DoferaGradClampRound.dorefa_clamp_round_weight(leaf(4, 6), space))
    down(apply._StraightThrough.apply(leaf(4, 6), (torch.rand(4, 6) > 0.5).float()))
    down(learnability.ramp.apply(leaf(5)), learnability.safesqrt.apply(torch.rand(5).requires_grad_()))
    paths, x, weight = (nn.Linear(4, 3), nn.Linear(4, 3)), leaf(2, 4), nn.Parameter(torch.randn(2))
    run = lambda k, *inputs: paths[k](*inputs)  # noqa: E731
    down(_ProxylessFunction.apply(run, 0, 1, lambda a: a.softmax(-1), weight, x, paths[0](x)))


@program
def matterhorn_pytorch():
    from matterhorn_pytorch.snn import functional as snn
    from matterhorn_pytorch.tnn import functional as tnn
    from matterhorn_pytorch.training import functional as training

    for name in ("rectangular", "polynomial", "sigmoid", "gaussian"):
        down(getattr(snn, f"heaviside_{name}")(leaf(4, 8)))
    for spike in (snn.floor, snn.ceil, snn.round):
        down(spike(leaf(4, 8, scale=2.0)))
    down(snn.from_spike_train(snn.to_spike_train(leaf(4, 8))))
    times = [(torch.rand(6) * 8).requires_grad_() for _ in range(2)]
    down(tnn.t_min(*times), tnn.t_max(*times), tnn.t_add(times[0], 2))
    with contextlib.suppress(RuntimeError):  # its backward calls a function without one of its arguments
        down(tnn.t_lt(*times))
    spikes = [(torch.rand(5, 6) < 0.4).float().requires_grad_() for _ in range(2)]
    down(tnn.s_add(spikes[0], 2))
    for pair in (tnn.s_min, tnn.s_max, tnn.s_lt):
        with contextlib.suppress(RuntimeError, TypeError):
            down(pair(*spikes))
    from matterhorn_pytorch.snn import soma

    given = (torch.rand(5, 2, 4) < 0.4).float()
    down(training.stdp_linear(given, leaf(3, 4), soma.LIF(), training=False)[0])


@program
def theseus_ai():
    import theseus as th
    from theseus.third_party.lml import LML
    from theseus.utils.sparse_matrix_utils import sparse_mtv, sparse_mv

    x, y = th.Vector(2, name="x"), th.Vector(2, name="y")
    objective = th.Objective()
    objective.add(th.Difference(x, y, th.ScaleCostWeight(2.0), name="fit"))
    layer = th.TheseusLayer(th.GaussNewton(objective, max_iterations=3))
    target = leaf(1, 2)
    for mode in ("unroll", "dlm", "implicit"):
        out, _ = layer.forward({"x": torch.zeros(1, 2), "y": target}, optimizer_kwargs={"backward_mode": mode})
        down(out["x"])
    down(LML(N=2, verbose=-1)(leaf(3, 5)))
    rows, columns = torch.tensor([0, 2, 3, 5], dtype=torch.int32), torch.tensor([0, 2, 1, 0, 3], dtype=torch.int32)
    values = torch.randn(2, 5, dtype=torch.float64).requires_grad_()
    down(sparse_mv(4, rows, columns, values, torch.randn(2, 4, dtype=torch.float64).requires_grad_()))
    down(sparse_mtv(4, rows, columns, values, torch.randn(2, 3, dtype=torch.float64).requires_grad_()))


@program
def pot():
    import ot

    x, y = leaf(5, 2), leaf(6, 2)
    weights = torch.full((5,), 0.2, requires_grad=True), torch.full((6,), 1 / 6, requires_grad=True)
    down(ot.emd2(*weights, ot.dist(x, y)))
    down(ot.gaussian.bures_wasserstein_distance(x.mean(0), y.mean(0), x.T @ x, y.T @ y))
    down(ot.gromov.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), *weights))


@program
def spikingjelly():
    from spikingjelly.activation_based import neuron, quantize, surrogate
    from spikingjelly.activation_based.layer.online_learning import ReplaceforGrad

    kinds = [
        kind
        for kind in vars(surrogate).values()
        if isinstance(kind, type) and issubclass(kind, surrogate.SurrogateFunctionBase)
    ]
    for kind in kinds:
        if kind is not surrogate.SurrogateFunctionBase:
            x = torch.rand(4, 8).requires_grad_() if kind is surrogate.PoissonPass else leaf(4, 8)
            down((kind(4) if kind is surrogate.MultiLevelSpikeCount else kind())(x))
    x = leaf(4, 8, scale=2.0)
    down(
        quantize.round(x),
        quantize.ceil(x),
        quantize.floor(x),
        quantize.clamp(x, -1.0, 1.0),
        quantize.step_quantize(x, 0.5),
    )
    down(quantize.k_bit_quantize(torch.rand(4, 8).requires_grad_(), 3), quantize.multi_level_spike_count(x, 4))
    down(neuron.DSRIFNode(T=4, step_mode="m")(leaf(4, 2, 3)), neuron.DSRLIFNode(T=4, step_mode="m")(leaf(4, 2, 3)))
    down(ReplaceforGrad.apply(leaf(4), leaf(4)))


@program
def skada():
    from skada.deep.modules import DomainClassifier

    down(DomainClassifier(num_features=4)(leaf(3, 4)))


@program
def deepwave():
    import deepwave

    speed, density, scatter = torch.full((12, 12), 1500.0), torch.full((12, 12), 2000.0), leaf(12, 12)
    where = torch.tensor([[[5, 5]]]), torch.tensor([[[5, 8]]])
    wave = deepwave.wavelets.ricker(25, 20, 0.004, 0.04).reshape(1, 1, -1)
    setup = {"pml_width": 2, "source_locations": where[0], "receiver_locations": where[1], "accuracy": 2}
    speed = (speed + 50 * torch.rand(12, 12)).requires_grad_()
    source = wave.clone().requires_grad_()
    down(deepwave.scalar(speed, 5.0, 0.002, source_amplitudes=source, **setup)[-1])
    born = {**setup, "source_locations": where[0], "receiver_locations": where[1]}
    down(deepwave.scalar_born(speed, 5.0, 0.002, dv=scatter, source_amplitudes=source, **born)[-1])
    del setup["source_locations"], setup["receiver_locations"]
    down(
        deepwave.acoustic(
            speed,
            density.requires_grad_(),
            5.0,
            0.002,
            source_amplitudes_p=source,
            source_locations_p=where[0],
            receiver_locations_p=where[1],
            **setup,
        )[-3]
    )


@program
def sigpy():
    import sigpy.linop
    import sigpy.pytorch

    down(sigpy.pytorch.to_pytorch_function(sigpy.linop.FiniteDifference((4, 4))).apply(leaf(4, 4)))
    blur = sigpy.linop.ConvolveData((6,), torch.rand(3).numpy())
    down(sigpy.pytorch.to_pytorch_function(blur).apply(leaf(6)))
    fourier = sigpy.linop.FFT((4,))
    down(sigpy.pytorch.to_pytorch_function(fourier, input_iscomplex=True, output_iscomplex=True).apply(leaf(4, 2)))


@program
def torch_linops():
    from linops.cg import CG

    half = torch.randn(5, 5)
    matrix = half @ half.T + torch.eye(5)
    down(CG(lambda x: matrix @ x, rtol=1e-6)(leaf(5)))


@program
def beamgrad():
    import beamgrad as beam

    options = beam.BeamOptions(beam_size=2)
    rows = torch.log_softmax(torch.randn(3, 2, 6), -1).requires_grad_()
    down(beam.final_scores(rows, options))
    from beamgrad.estimators import _SoftTopK

    down(_SoftTopK.apply(leaf(2, 6), 2, 0.5, 1e-6, 100))
    table = leaf(6, 6)
    found = beam.beam_search(
        lambda state: torch.log_softmax(
            table[state.sequences[..., -1].clamp(min=0)]
            if state.step
            else table[:1].expand(1, state.parents.shape[1], 6),
            -1,
        ),
        options,
        3,
    )
    down(found.scores)


@program
def performer_pytorch():
    from performer_pytorch import Performer

    down(Performer(dim=16, depth=2, heads=2, dim_head=8, reversible=True, causal=False)(leaf(1, 8, 16)))


@program
def pennylane():
    import pennylane as qml

    device = qml.device("default.qubit", wires=2)

    def circuit(x, w):
        qml.RX(x[0], wires=0)
        qml.RY(w[0], wires=1)
        qml.CNOT(wires=[0, 1])
        qml.RZ(w[1], wires=1)
        return qml.expval(qml.PauliZ(1)), qml.expval(qml.PauliX(0))

    for method in ("parameter-shift", "adjoint", "finite-diff"):
        node = qml.QNode(circuit, device, interface="torch", diff_method=method)
        down(*node(leaf(1, scale=0.5), leaf(2, scale=0.5)))
    state = torch.randn(2, 2, dtype=torch.complex128)
    states = [state @ state.mH + k * torch.eye(2) for k in (1, 2)]
    states = [(one / one.trace()).detach().requires_grad_() for one in states]
    down(qml.math.fidelity(*states))


@program
def qpth():
    from qpth.qp import QPFunction

    half = leaf(3, 3)
    quadratic = half @ half.T + torch.eye(3)
    down(
        QPFunction(verbose=-1)(
            quadratic, leaf(2, 3), leaf(2, 3), torch.ones(2, requires_grad=True), leaf(1, 3), torch.zeros(1)
        )
    )


@program
def pyqtorch():
    import pyqtorch as pyq

    circuit = pyq.QuantumCircuit(2, [pyq.RX(0, "a"), pyq.CNOT(0, 1), pyq.RY(1, "b")])
    observable = pyq.Observable(pyq.Add([pyq.Z(0), pyq.X(1)]))
    for mode in (pyq.DiffMode.ADJOINT, pyq.DiffMode.GPSR):
        values = {name: torch.rand(2, dtype=torch.float64).requires_grad_() for name in "ab"}
        down(pyq.expectation(circuit, values=values, observable=observable, diff_mode=mode))


@program
def bitorch():
    from bitorch import quantizations as kinds
    from bitorch.layers.pact import Pact
    from bitorch.layers.qactivation import QActivation

    for kind in (
        kinds.ApproxSign,
        kinds.Sign,
        kinds.SteHeaviside,
        kinds.SwishSign,
        kinds.InputDoReFa,
        kinds.WeightDoReFa,
        kinds.ProgressiveSign,
    ):
        down(kind()(leaf(4, 8)))
    down(Pact()(leaf(4, 8)), QActivation("sign", gradient_cancellation_threshold=1.3)(leaf(4, 8)))


@program
def qtorch():
    from qtorch import FixedPoint, FloatingPoint
    from qtorch.quant import quantizer

    fixed, floating = FixedPoint(8, 4), FloatingPoint(4, 3)
    for number in (fixed, floating):
        down(quantizer(forward_number=number, forward_rounding="nearest")(leaf(4, 6)))
    down(quantizer(forward_number=fixed, forward_rounding="nearest", clamping_grad_zero=True)(leaf(4, 6)))
    down(quantizer(backward_number=floating, backward_rounding="nearest")(leaf(4, 6)))


def first_of_one_process():
    """Start a group of one process, as a launcher would; False where there is one already."""
    import tempfile

    from torch import distributed

    if distributed.is_initialized():
        return False
    distributed.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
    return True


@program
def fairscale():
    from fairscale.nn import checkpoint_wrapper
    from fairscale.nn.model_parallel import cross_entropy, initialize, mappings
    from fairscale.nn.moe.moe_layer import _AllToAll
    from fairscale.nn.pipe.checkpoint import Checkpointing
    from fairscale.nn.pipe.dependency import fork, join
    from fairscale.nn.pipe.microbatch import Batch
    from torch import distributed

    if first_of_one_process():
        initialize.initialize_model_parallel(1)
    names = "copy_to reduce_from scatter_to gather_from"
    down(*(getattr(mappings, f"{name}_model_parallel_region")(leaf(3, 4) * 1) for name in names.split()))
    down(cross_entropy.vocab_parallel_cross_entropy(leaf(3, 4), torch.tensor([0, 2, 1])))
    down(_AllToAll.apply(distributed.group.WORLD, leaf(3, 4)))
    x, phony = fork(leaf(3, 4))
    down(join(x, phony))
    down(checkpoint_wrapper(nn.Linear(4, 3))(leaf(2, 4)))
    checkpointing = Checkpointing(
        lambda batch: batch.call(nn.Tanh()) if isinstance(batch, Batch) else torch.tanh(batch), Batch(leaf(2, 4), 0)
    )
    batch = checkpointing.checkpoint()
    checkpointing.recompute(batch)
    down(batch.tensor)


@program
def echoai():
    from echoAI.Activation.Torch.apl import APL
    from echoAI.Activation.Torch.brelu import BReLU
    from echoAI.Activation.Torch.maxout import Maxout

    down(BReLU.apply(leaf(4, 5)), Maxout.apply(leaf(2, 8, 3, 3)), APL(5, 3)(leaf(4, 5)))


@program
def torch_sla():
    import torch_sla as sla

    row, col = torch.tensor([0, 0, 1, 1, 1, 2, 2]), torch.tensor([0, 1, 0, 1, 2, 1, 2])

    def values():
        return torch.tensor([4.0, -1.0, -1.5, 4.0, -1.0, -0.5, 4.0], dtype=torch.float64, requires_grad=True)

    def right(*shape):
        return torch.randn(*shape, dtype=torch.float64).requires_grad_()

    down(sla.spsolve(values(), row, col, (3, 3), right(3)))
    down(sla.spsolve(values(), row, col, (3, 3), right(3), backend="pytorch", method="bicgstab"))
    several = torch.stack([values().detach(), 1.2 * values().detach()]).requires_grad_()
    down(sla.spsolve_batch_same_layout(several, row, col, (3, 3), right(2, 3)))
    matrix = sla.SparseTensor(values(), row, col, (3, 3))
    down(matrix.det(), matrix.solve(right(3)), *matrix.svd(k=2)[1:2])
    symmetric = torch.tensor([4.0, -1.0, -1.0, 3.0, -1.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    down(sla.SparseTensor(symmetric, row, col, (3, 3)).eigsh(k=2)[0])
    down(sla.SparseTensor(symmetric, row, col, (3, 3)).logdet(method="hutchinson"))
    scale = torch.tensor([0.5, 0.8, 1.1], dtype=torch.float64, requires_grad=True)
    down(sla.nonlinear_solve(lambda u, p: u + p * u**3 - 1, torch.zeros(3, dtype=torch.float64), scale))
    product = sla.SparseTensor(values(), row, col, (3, 3)) @ sla.SparseTensor(values(), row, col, (3, 3))
    down(product.values)


@program
def btorch():
    from btorch.models import surrogate

    kinds = (
        surrogate.ATan,
        surrogate.ATanApprox,
        surrogate.Erf,
        surrogate.Sigmoid,
        surrogate.SuperSpike,
        surrogate.Triangle,
    )
    for kind in (*kinds, surrogate.PoissonRandomSpike):
        down(kind()(leaf(4, 8)), kind(spiking=False)(leaf(4, 8)))


@program
def torchode():
    import torchode as ode

    field = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)).double()

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.field = field

        def forward(self, t, y):
            return self.field(y)

    term = ode.ODETerm(Field())
    controller = ode.IntegralController(atol=1e-9, rtol=1e-9, term=term)
    problem = ode.InitialValueProblem(
        y0=torch.randn(2, 2, dtype=torch.float64).requires_grad_(),
        t_start=torch.zeros(2, dtype=torch.float64),
        t_end=torch.ones(2, dtype=torch.float64),
        t_eval=torch.linspace(0, 1, 3, dtype=torch.float64).repeat(2, 1),
    )
    down(ode.BacksolveAdjoint(term, ode.Tsit5(term), controller).solve(problem).ys)


@program
def pytorchvideo():
    from pytorchvideo.layers.swish import Swish

    down(Swish()(leaf(4, 5)))


@program
def deepsplines():
    from deepsplines.ds_modules import DeepBSpline

    for save in (False, True):
        spline = DeepBSpline(mode="conv", num_activations=2, size=9, range_=2, init="leaky_relu", save_memory=save)
        down(spline(leaf(2, 2, 3, 3)))


@program
def torchjd():
    from torchjd.autogram import Engine

    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    engine = Engine(model, batch_dim=0)
    loss = model(torch.randn(5, 3)).squeeze(1).square()
    gramian = engine.compute_gramian(loss)
    loss.backward(gramian.sum(1) / gramian.sum())


@program
def torch_activation():
    from torch_activation.classical.other import Binary

    down(Binary()(leaf(4, 8)))


@program
def geomloss():
    from geomloss import SamplesLoss

    down(SamplesLoss("sinkhorn", p=2, blur=0.5, backend="tensorized")(leaf(5, 2), leaf(6, 2)))
    down(SamplesLoss("gaussian", blur=0.5, potentials=False, backend="tensorized")(leaf(5, 2), leaf(6, 2)))


@program
def pytorch_finufft():
    from pytorch_finufft.functional import finufft_type1, finufft_type2

    points = (6 * torch.rand(2, 7, dtype=torch.float64) - 3).requires_grad_()
    strengths = torch.randn(7, dtype=torch.complex128).requires_grad_()
    down(torch.view_as_real(finufft_type1(points, strengths, (4, 5), eps=1e-12)))
    down(
        torch.view_as_real(finufft_type2(points, torch.randn(4, 5, dtype=torch.complex128).requires_grad_(), eps=1e-12))
    )


@program
def st_moe_pytorch():
    from st_moe_pytorch.distributed import AllGather

    first_of_one_process()
    down(AllGather(dim=1)(leaf(2, 3))[0])


@program
def megatron_core():
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.tensor_parallel import mappings
    from megatron.core.transformer.moe.moe_utils import MoEAuxLossAutoScaler
    from megatron.core.utils import make_viewless_tensor

    if first_of_one_process():
        parallel_state.initialize_model_parallel()
    names = "copy_to_tensor_model_parallel reduce_from_tensor_model_parallel scatter_to_tensor_model_parallel"
    names += " gather_from_tensor_model_parallel scatter_to_sequence_parallel gather_from_sequence_parallel"
    names += " reduce_scatter_to_sequence_parallel"
    down(*(getattr(mappings, f"{name}_region")(leaf(3, 4) * 1) for name in names.split()))
    down(mappings.all_to_all(parallel_state.get_tensor_model_parallel_group(), leaf(3, 4)))
    down(tensor_parallel.vocab_parallel_cross_entropy(leaf(3, 2, 4), torch.randint(4, (3, 2))))
    down(MoEAuxLossAutoScaler.apply(leaf(3, 4), torch.tensor(0.3, requires_grad=True)))
    down(make_viewless_tensor(leaf(3, 4).view(4, 3), True, True))
    down(
        tensor_parallel.layers.LinearWithFrozenWeight.apply(
            leaf(2, 4), torch.randn(3, 4), torch.randn(3), False, parallel_state.get_tensor_model_parallel_group()
        )
    )


@program
def deel_torchlip():
    from deel.torchlip.utils.sqrt_eps import sqrt_with_gradeps

    down(sqrt_with_gradeps(torch.rand(5).requires_grad_()))


@program
def torchkin():
    import tempfile
    from pathlib import Path

    from torchkin import Robot, get_forward_kinematics_fns

    joints = "".join(
        f'<joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="0.3 0.1 0.2" rpy="0.4 0.2 0.1"/><limit effort="1" velocity="1" lower="-2" upper="2"/></joint>'
        for k, kind in enumerate(("revolute", "prismatic", "revolute"))
    )
    links = "".join(f'<link name="l{k}"/>' for k in range(4))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arm.urdf")
        path.write_text(f'<robot name="arm">{links}{joints}</robot>')
        robot = Robot.from_urdf_file(str(path))
    down(*get_forward_kinematics_fns(robot, ["l2", "l3"])[0](leaf(2, 3)))


@program
def pytorch_adapt():
    from pytorch_adapt.layers import GradientReversal

    down(GradientReversal(0.5)(leaf(3, 4)))


@program
def reformer_pytorch():
    from reformer_pytorch import Reformer

    down(Reformer(dim=16, depth=2, heads=2, bucket_size=4, causal=False)(leaf(1, 8, 16)))


@program
def torchsparsegradutils():
    import torchsparsegradutils as sparse

    dense = torch.tril(torch.randn(4, 4, dtype=torch.float64)) + 4 * torch.eye(4, dtype=torch.float64)
    given = torch.randn(4, 2, dtype=torch.float64)
    for layout in ("to_sparse_coo", "to_sparse_csr"):
        matrix = getattr(dense, layout)().requires_grad_()
        for solve in (sparse.sparse_mm, sparse.sparse_generic_solve):
            down(solve(matrix, given.clone().requires_grad_()))
        down(sparse.sparse_triangular_solve(matrix, given.clone().requires_grad_(), upper=False))


@program
def torchrl():
    from torchrl.modules.distributions import utils

    down(utils.safetanh(leaf(5), 1e-6), utils.safeatanh((1.6 * torch.rand(5) - 0.8).requires_grad_(), 1e-6))


@program
def odl():
    import numpy as np
    from odl import MatrixOperator, functionals, rn
    from odl.contrib.torch import OperatorFunction, OperatorModule

    matrix, norm = MatrixOperator(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 2.0]])), functionals.L2NormSquared(rn(3))
    x, rows = (torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in ((3,), (2, 1, 3)))
    down(OperatorFunction.apply(matrix, x), OperatorFunction.apply(norm, x))
    down(OperatorModule(matrix)(rows), OperatorModule(norm)(rows))
