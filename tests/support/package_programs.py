"""Programs of a few lines that use released packages as their users do; the packages are found on ``sys.path``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

PROGRAMS: dict[str, Callable[[], None]] = {}


def program(run):
    """Take a program under its distribution's name, which its own name spells with underscores."""
    PROGRAMS[run.__name__.replace("_", "-")] = run
    return run


def leaf(*shape, scale=1.0):
    return (scale * torch.randn(*shape)).requires_grad_()


def down(*outputs):
    """Backward from all that is differentiable, with different weights."""
    ends = [y for y in outputs if y.requires_grad]
    sum((y * torch.linspace(0.5, 1.5, y.numel()).view(y.shape)).abs().sum() for y in ends).backward()


@program
def entmax():
    import entmax

    x, targets = leaf(4, 5), torch.tensor([0, 2, 1, 4])
    down(entmax.sparsemax(x), entmax.entmax15(x), entmax.sparsemax_bisect(x), entmax.normmax_bisect(x))
    down(entmax.entmax_bisect(x, 1.3), entmax.budget_bisect(x))
    down(entmax.entmax_bisect(x, torch.tensor(1.6, requires_grad=True)))  # the exponent is learned
    losses = entmax.SparsemaxLoss, entmax.Entmax15Loss, entmax.SparsemaxBisectLoss, entmax.EntmaxBisectLoss
    down(*(loss()(x, targets) for loss in (*losses, entmax.NormmaxBisectLoss)))


@program
def sparsemax():
    from sparsemax import Sparsemax

    down(Sparsemax(dim=-1)(leaf(4, 5)), Sparsemax(dim=1)(leaf(2, 3, 4)))


@program
def snntorch():
    import snntorch as snn
    from snntorch import functional, surrogate
    from snntorch.functional import quant

    gradients = surrogate.fast_sigmoid(), surrogate.atan(), surrogate.sigmoid(), surrogate.triangular()
    gradients += surrogate.straight_through_estimator(), surrogate.spike_rate_escape(), surrogate.SSO()
    gradients += surrogate.SFS(), surrogate.heaviside()
    for gradient in gradients:
        layer, neuron = nn.Linear(4, 3), snn.Leaky(beta=0.9, spike_grad=gradient)
        spikes, _ = neuron(layer(torch.randn(5, 4)), neuron.init_leaky())
        down(spikes)
    down(quant.state_quant(num_bits=4)(leaf(5)))
    spikes = (torch.rand(6, 2, 3) < 0.3).float().requires_grad_()  # time, batch, classes
    functional.mse_temporal_loss()(spikes, torch.tensor([0, 2])).backward()


@program
def norse():
    from norse.torch import LIFCell, SequentialState
    from norse.torch.functional.threshold import threshold

    layers, state = SequentialState(nn.Linear(128, 128), LIFCell(), nn.Linear(128, 10), LIFCell()), None
    for step in torch.randn(3, 32, 128):
        spikes, state = layers(step, state)
    down(spikes)
    for method in ("triangle", "circ", "heavi_erfc"):
        down(threshold(leaf(32, 128), method, 10.0))


@program
def sinabs():
    from sinabs import activation, layers

    surrogates = activation.SingleExponential(), activation.MultiGaussian(), activation.Heaviside(window=0.5)
    for surrogate in surrogates:
        for spike in (activation.SingleSpike, activation.MultiSpike, activation.MaxSpike(2)):
            neuron = layers.LIF(tau_mem=20.0, surrogate_grad_fn=surrogate, spike_fn=spike)
            down(nn.Sequential(nn.Linear(128, 128), neuron)(torch.randn(4, 8, 128)))
    down(layers.QuantizeLayer(quantize=True)(leaf(32, 128)))


@program
def torchao():
    from torchao.quantization import quantize_
    from torchao.quantization.qat import IntxFakeQuantizeConfig, QATConfig

    model = nn.Sequential(nn.Linear(1024, 256))
    activations = IntxFakeQuantizeConfig(torch.int8, "per_token", is_symmetric=False)
    weights = IntxFakeQuantizeConfig(torch.int4, group_size=32)  # the largest of a group is exactly on a jump
    quantize_(model, QATConfig(activation_config=activations, weight_config=weights, step="prepare"))
    down(model(leaf(4, 1024)))


@program
def efficientnet_pytorch():
    from efficientnet_pytorch.utils import MemoryEfficientSwish

    down(nn.Sequential(nn.Linear(4, 3), MemoryEfficientSwish())(leaf(5, 4)))


@program
def pytorch_revgrad():
    from pytorch_revgrad import RevGrad

    down(nn.Sequential(nn.Linear(4, 3), RevGrad(alpha=0.5))(leaf(5, 4)))


@program
def memcnn():
    import memcnn

    def block():
        return nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    adapted = {"adapter": memcnn.AffineAdapterNaive}
    for kind, more in ((memcnn.AdditiveCoupling, {}), (memcnn.AffineCoupling, adapted)):
        for keep in (True, False):
            coupling = kind(block(), block(), **more)
            down(memcnn.InvertibleModuleWrapper(coupling, keep_input=keep, keep_input_inverse=keep)(leaf(3, 4) * 1))
        for which in (0, 1):
            coupling = kind(block(), block(), implementation_fwd=which, implementation_bwd=which, **more)
            down(coupling(leaf(3, 4) * 1))
            down(coupling.inverse(leaf(3, 4) * 1))


@program
def torchsde():
    import torchsde

    class Equation(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.rate = nn.Parameter(torch.tensor(0.3))

        def f(self, t, y):
            return -self.rate * y

        def g(self, t, y):
            return 0.1 * y

    times = torch.tensor([0.0, 0.5])
    down(torchsde.sdeint_adjoint(Equation(), leaf(3, 2), times, dt=0.1, method="euler"))


@program
def kymatio():
    from kymatio.torch import Scattering1D, Scattering2D

    down(Scattering1D(J=2, shape=(32,), Q=2)(leaf(1, 32)))
    down(Scattering2D(J=1, shape=(8, 8), L=2)(leaf(1, 8, 8)))


@program
def torchdiffeq():
    from torchdiffeq import odeint, odeint_adjoint, odeint_event

    class Falling(nn.Module):
        def __init__(self):
            super().__init__()
            self.gravity = nn.Parameter(torch.tensor([9.8]))

        def forward(self, t, state):
            position, velocity = state
            return velocity, -self.gravity + 0 * position

    start, times = (leaf(1) + 10, leaf(1)), torch.linspace(0, 1, 3)
    down(*odeint_adjoint(Falling(), start, times))
    time, states = odeint_event(
        Falling(), start, torch.tensor(0.0), event_fn=lambda t, state: state[0].sum(), odeint_interface=odeint
    )
    down(time, *states)
    times = times.clone().requires_grad_()
    down(odeint(lambda t, y: -t * y, leaf(2), times, method="rk4", options={"perturb": True}))


@program
def pypose():
    import pypose as pp

    for tangent in (pp.randn_so3, pp.randn_se3, pp.randn_rxso3, pp.randn_sim3):
        a, b = tangent(2, requires_grad=True), tangent(2)
        group = a.Exp()
        ends = (group @ b.Exp()).Log(), group.Inv(), group.Adj(b), group.AdjT(b)
        down(*(end.tensor() for end in ends), group.Act(torch.randn(2, 3)), group.Act(torch.randn(2, 4)))


@program
def pytorch_wavelets():
    import pytorch_wavelets as wavelets

    x = leaf(1, 1, 8, 8)
    low, high = wavelets.DWTForward(J=1, wave="db2", mode="symmetric")(x)
    down(wavelets.DWTInverse(wave="db2", mode="symmetric")((low, high)))
    low, high = wavelets.DWT1DForward(J=1, wave="db2")(leaf(1, 1, 8))
    down(wavelets.DWT1DInverse(wave="db2")((low, high)))
    low, high = wavelets.DTCWTForward(J=2)(x)
    down(wavelets.DTCWTInverse()((low, high)))
    for layer in (wavelets.ScatLayer(), wavelets.ScatLayerj2(), wavelets.ScatLayer(biort="near_sym_b_bp")):
        down(layer(x))


@program
def torchkbnufft():
    import torchkbnufft as nufft

    places = (torch.rand(2, 10) - 0.5) * 6
    image = torch.randn(1, 1, 8, 8, dtype=torch.complex64, requires_grad=True)
    signal = torch.randn(1, 1, 10, dtype=torch.complex64, requires_grad=True)
    forward, adjoint = nufft.KbNufft(im_size=(8, 8)), nufft.KbNufftAdjoint(im_size=(8, 8))
    matrices = nufft.calc_tensor_spmatrix(places, im_size=(8, 8))
    down(forward(image, places), adjoint(signal, places))
    down(forward(image, places, interp_mats=matrices), adjoint(signal, places, interp_mats=matrices))


@program
def torch_interpol():
    import interpol

    image, grid = leaf(1, 1, 6, 6), (torch.rand(1, 4, 4, 2) * 4).requires_grad_()
    for order in (1, 3):
        down(interpol.grid_pull(image, grid, order, "dct2"), interpol.grid_grad(image, grid, order, "dct2"))
        down(interpol.grid_push(leaf(1, 1, 4, 4), grid, (6, 6), order, "dct2"))
        down(interpol.grid_count(grid, (6, 6), order, "dct2"))
    down(interpol.spline_coeff_nd(leaf(1, 1, 6, 6), 3, dim=2))
    interpol.spline_coeff(leaf(1, 1, 6), 3, dim=-1)  # its backward raises


@program
def gpytorch():
    import gpytorch
    from gpytorch import variational

    x = torch.randn(4, 2)
    kernels = [gpytorch.kernels.RBFKernel(), *(gpytorch.kernels.MaternKernel(nu=nu) for nu in (0.5, 1.5, 2.5))]
    down(*(kernel(x).to_dense() for kernel in kernels), gpytorch.functions.log_normal_cdf(leaf(6, scale=4.0)))

    class Process(gpytorch.models.ApproximateGP):
        def __init__(self, distribution, strategy):
            super().__init__(strategy(self, torch.randn(4, 2), distribution, learn_inducing_locations=True))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    for distribution, strategy in (
        (variational.NaturalVariationalDistribution(4), variational.VariationalStrategy),
        (variational.TrilNaturalVariationalDistribution(4), variational.VariationalStrategy),
        (variational.CholeskyVariationalDistribution(4), variational.LargeBatchVariationalStrategy),
    ):
        process = Process(distribution, strategy)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        bound = gpytorch.mlls.VariationalELBO(likelihood, process, num_data=6)
        process.train()
        (-bound(process(torch.randn(6, 2)), torch.randn(6))).backward()


@program
def pytorch_tabnet():
    from pytorch_tabnet.sparsemax import Entmax15, Sparsemax

    down(Sparsemax(dim=-1)(leaf(4, 5)), Entmax15(dim=-1)(leaf(4, 5)))


@program
def revtorch():
    import revtorch

    blocks = [revtorch.ReversibleBlock(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(2)]
    down(revtorch.ReversibleSequence(nn.ModuleList(blocks))(leaf(3, 4) * 1))


@program
def geffnet():
    from geffnet.activations import activations_me as memory_efficient

    layers = memory_efficient.SwishMe, memory_efficient.MishMe
    layers += memory_efficient.HardSigmoidMe, memory_efficient.HardSwishMe
    down(*(layer()(leaf(4, 5, scale=3.0)) for layer in layers))


@program
def pylops():
    import pylops

    down(pylops.TorchOperator(pylops.FirstDerivative(6, dtype="float32")).apply(leaf(6)))
    down(pylops.TorchOperator(pylops.Smoothing1D(3, 6, dtype="float32"), batch=True).apply(leaf(2, 6)))


@program
def linear_operator():
    from linear_operator.operators import DenseLinearOperator

    root = torch.randn(6, 6, dtype=torch.float64)
    matrix = (root @ root.mT + 6 * torch.eye(6, dtype=torch.float64)).requires_grad_()
    down(DenseLinearOperator(matrix).solve(torch.randn(6, 2, dtype=torch.float64, requires_grad=True)))


@program
def xitorch():
    from xitorch.integrate import quad

    a = torch.rand(3, dtype=torch.float64, requires_grad=True)
    ends = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    down(quad(lambda x, a: a * torch.cos(a * x), *ends, params=(a,)))


@program
def torch_itself():
    import torch.distributed as dist
    import torch.distributed.nn
    from torch.utils.checkpoint import checkpoint

    layer = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    down(checkpoint(layer, leaf(5, 4), use_reentrant=True), checkpoint(layer, leaf(5, 4), use_reentrant=False))
    down(nn.CrossMapLRN2d(3)(leaf(2, 4, 3, 3)))
    torch.func.grad(lambda x: Cube.apply(x).sum())(torch.randn(3))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # stays for the checks
    sent = [leaf(2, 3) * 1 for _ in range(5)]
    down(dist.nn.all_reduce(sent[0]), *dist.nn.all_gather(sent[1]), dist.nn.broadcast(sent[2], 0))
    down(*dist.nn.gather(sent[3]), dist.nn.reduce(sent[4], 0))


class Cube(torch.autograd.Function):
    """A user's Function inside ``torch.func``."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


@program
def memory_efficient_attention_pytorch():
    from memory_efficient_attention_pytorch.cosine_sim_flash_attention import FlashAttention

    sizes = {"dim": 16, "heads": 2, "dim_head": 8, "causal": True, "q_bucket_size": 4, "k_bucket_size": 4}
    down(FlashAttention(**sizes)(leaf(1, 9, 16)))
