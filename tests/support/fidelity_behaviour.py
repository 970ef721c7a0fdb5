"""Checks of the battery that compare behaviour: errors and their frames, identity, sources, modes, liveness, func."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import io
import pickle
import traceback
import warnings
import weakref

import fidelity_functions as make
import torch
from fidelity_values import bits, leaf
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def raised(action):
    """Type, text and frames of what an action raises."""
    try:
        action()
    except BaseException as error:
        frames = [(f.name, f.lineno, f.line) for f in traceback.extract_tb(error.__traceback__)[1:]]
        return type(error).__name__, str(error), frames
    return None


def raised_in(where, wrap):
    cls = wrap(make.failing(where))
    return raised(lambda: cls.apply(leaf(3)).sum().backward())


for place in ("forward", "interrupt", "exit", "backward", "many", "shape", "float"):
    CHECKS[f"raised: {place}"] = functools.partial(raised_in, place)


@check
def error_in_setup_context(wrap):
    cls = wrap(make.failing_setup())
    return raised(lambda: cls.apply(leaf(3)))


@check
def gradient_is_none(wrap):
    x = leaf(3)
    wrap(make.failing("none")).apply(x).sum().backward()
    return x.grad


@check
def too_few_arguments(wrap):
    cls = wrap(make.mul())
    return raised(lambda: cls.apply(leaf(3)))


@check
def too_many_arguments(wrap):
    cls = wrap(make.cube())
    return raised(lambda: cls.apply(leaf(3), 2, 3))


@check
def unknown_keyword(wrap):
    cls = wrap(make.mul())
    return raised(lambda: cls.apply(leaf(3), leaf(3), colour="red"))


@check
def keyword_only_argument(wrap):
    cls = wrap(make.keyword_heavy())
    return raised(lambda: bits(cls.apply(leaf(3), power=2)))


@check
def backward_and_vjp(wrap):
    out = wrap(make.both_styles()).apply(leaf(3))
    return raised(lambda: out.sum().backward())


@check
def legacy_style_error(wrap):
    cls = wrap(make.legacy())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = raised(lambda: cls()(leaf(3)))
    return error, [(w.category.__name__, w.lineno) for w in caught]


@check
def backward_twice(wrap):
    out = wrap(make.mul()).apply(leaf(3), leaf(3)).sum()
    out.backward()
    return raised(out.backward)


@check
def saved_tensor_changed_in_place(wrap):
    x = leaf(3) * 1
    out = wrap(make.mul()).apply(x, x)
    x.add_(1)
    return raised(lambda: out.sum().backward())


@check
def once_differentiable(wrap):
    cls, x = wrap(make.once()), leaf(3)
    (g,) = torch.autograd.grad(cls.apply(x).sum(), x, create_graph=True)
    return bits(g), raised(lambda: g.sum().backward())


@check
def anomaly_mode(wrap):
    cls = wrap(make.failing("backward"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            out = cls.apply(leaf(3))
            error = raised(lambda: out.sum().backward())
    lines = [line.strip() for w in caught for line in str(w.message).splitlines() if "fidelity_" in line]
    return error, [line.split("fidelity", 1)[1] for line in lines]


@check
def instance_warning_location(wrap):
    cls = wrap(make.warning())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cls.apply(leaf(3))
    return [(str(w.message), w.lineno, w.filename) for w in caught]


@check
def prints(wrap):
    cls, text = wrap(make.printing()), io.StringIO()
    with contextlib.redirect_stdout(text):
        cls.apply(leaf(3)).sum().backward()
    return text.getvalue()


@check
def seen_from_inside(wrap):
    cls = wrap(make.looking_at_itself())
    cls.apply(leaf(3)).sum().backward()
    return cls.found


@check
def names_and_doc(wrap):
    cls = wrap(make.mul())
    return cls.__name__, cls.__qualname__, cls.__module__, cls.__doc__, cls.forward.__qualname__, repr(cls)


@check
def class_dict_keys(wrap):
    return list(vars(wrap(make.mul())))


@check
def static_methods(wrap):
    cls = wrap(make.mul())
    return isinstance(vars(cls)["forward"], staticmethod), isinstance(
        inspect.getattr_static(cls, "backward"), staticmethod
    )


@check
def method_is_the_users(wrap):
    cls = make.mul()
    forward, backward = cls.forward, cls.backward
    wrap(cls)
    return cls.forward is forward, cls.backward is backward, vars(cls)["forward"].__func__ is forward


@check
def through_an_instance(wrap):
    cls = wrap(make.mul())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls().forward is cls.forward


def signature_of_apply(cls):
    """None where apply is written in C, as since torch 2.14."""
    try:
        return str(inspect.signature(cls.apply))
    except ValueError:
        return None


@check
def signature(wrap):
    cls = wrap(make.mul())
    return str(inspect.signature(cls.forward)), signature_of_apply(cls), cls.forward.__defaults__


@check
def source(wrap):
    cls = wrap(make.mul())
    return inspect.getsource(cls), inspect.getsource(cls.backward), inspect.getsourcefile(cls.forward)


@check
def code_object(wrap):
    code = wrap(make.mul()).forward.__code__
    return code.co_filename, code.co_firstlineno, code.co_varnames, code.co_argcount


@check
def grad_fn_type(wrap):
    out = wrap(make.mul()).apply(leaf(3), leaf(3))
    kind = type(out.grad_fn)
    return kind.__name__, [b.__name__ for b in kind.__mro__], out.grad_fn.name(), sorted(vars(out.grad_fn))


@check
def ctx_contents(wrap):
    out = wrap(make.keeping()).apply(leaf(3))
    return sorted(vars(out.grad_fn)), out.grad_fn.text, out.grad_fn.metadata


@check
def saved_tensors_through_grad_fn(wrap):
    out = wrap(make.mul()).apply(leaf(3), leaf(3, seed=1))
    return bits(out.grad_fn.saved_tensors), out.grad_fn.needs_input_grad


@check
def pickled_output(wrap):
    return bits(pickle.loads(pickle.dumps(wrap(make.mul()).apply(leaf(3), leaf(3)).detach())))


@check
def pickled_class(wrap):
    cls = wrap(PickledByName)
    return pickle.loads(pickle.dumps(cls)) is cls, pickle.dumps(cls)


@check
def pickled_method(wrap):
    cls = wrap(PickledByName)
    return pickle.dumps(cls.forward), pickle.loads(pickle.dumps(cls.apply)) == cls.apply


@check
def reduced_static_method(wrap):
    entry = vars(wrap(make.mul()))["forward"]
    return entry.__reduce_ex__(4)[0] if type(entry) is not staticmethod else staticmethod


class PickledByName(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@check
def operations_dispatched(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    with Operations() as mode:
        cls.apply(x, x * 2).sum().backward()
    return mode.names


@check
def operations_dispatched_setup_context(wrap):
    cls, x = wrap(make.cube()), leaf(300)
    with Operations() as mode:
        cls.apply(x)[0].sum().backward()
    return mode.names


@check
def torch_functions_seen(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    with Functions() as mode:
        cls.apply(x, x * 2).sum().backward()
    return mode.names


@check
def profiler_events(wrap):
    cls, x = wrap(make.mul()), leaf(3)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        cls.apply(x, x * 2).sum().backward()
    return sorted((event.key, event.count) for event in profile.key_averages() if not event.key.startswith("["))


@check
def jit_trace(wrap):
    cls = wrap(make.mul())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(lambda x: cls.apply(x, x) + 1, torch.ones(3))
    return [node.kind() for node in traced.graph.nodes()]


@check
def made_into_a_graph(wrap):
    from torch.fx.experimental.proxy_tensor import make_fx

    cls = wrap(make.mul())
    return make_fx(lambda x: cls.apply(x, x * 2))(torch.ones(3)).code


@check
def made_into_a_fake_graph(wrap):
    from torch.fx.experimental.proxy_tensor import make_fx

    cls = wrap(make.mul())
    return make_fx(lambda x: cls.apply(x, x * 2), tracing_mode="symbolic")(torch.ones(3)).code


@check
def fake_tensors(wrap):
    from torch._subclasses.fake_tensor import FakeTensorMode

    cls = wrap(make.mul())
    with FakeTensorMode():
        out = cls.apply(torch.ones(3, requires_grad=True), torch.ones(3))
    return type(out).__name__, tuple(out.shape)


@check
def tensor_subclass(wrap):
    class Labelled(torch.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(getattr(func, "__name__", ""))
            return super().__torch_function__(func, types, args, kwargs or {})

    cls = wrap(make.mul())
    x = torch.ones(3).as_subclass(Labelled).requires_grad_()
    Labelled.seen.clear()
    cls.apply(x, x).sum().backward()
    return Labelled.seen


@check
def copy_on_write_stays(wrap):
    cls = wrap(make.mul())
    x = torch.ones(3)
    lazy = torch._lazy_clone(x)
    cls.apply(lazy, torch.ones(3))
    return torch._C._is_cow_tensor(lazy)


@check
def repr_is_never_called(wrap):
    class Loud:
        def __init__(self):
            self.calls = 0

        def __repr__(self):
            self.calls += 1
            return "loud"

        def __getattr__(self, name):
            raise RuntimeError(name)

    class Takes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, loud):
            ctx.loud = loud
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    wrap(Takes)
    loud, x = Loud(), leaf(3)
    Takes.apply(x, loud).sum().backward()
    return loud.calls, bits(x.grad)


@contextlib.contextmanager
def no_gc():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@check
def inputs_freed(wrap):
    cls = wrap(make.mul())
    with no_gc():
        x = leaf(3) * 1
        ref = weakref.ref(x)
        out = cls.apply(x, torch.ones(3, dtype=torch.float64)).sum()
        del x
        held = ref() is not None
        del out
        return held, ref() is None


@check
def outputs_freed(wrap):
    cls = wrap(make.mul())
    with no_gc():
        out = cls.apply(leaf(3), leaf(3))
        ref = weakref.ref(out)
        del out
        return ref() is None


@check
def ctx_freed(wrap):
    cls = wrap(make.mul())
    with no_gc():
        out = cls.apply(leaf(3), leaf(3))
        ref = weakref.ref(out.grad_fn)
        out.sum().backward()
        del out
        return ref() is None


@check
def ctx_freed_setup_context(wrap):
    cls = wrap(make.cube())
    with no_gc():
        out = cls.apply(leaf(3))
        ref = weakref.ref(out[0].grad_fn)
        del out
        return ref() is None


@check
def ctx_freed_after_an_error(wrap):
    cls = wrap(make.failing("forward"))
    with no_gc():
        x = leaf(3) * 1
        ref = weakref.ref(x)
        raised(functools.partial(cls.apply, x))
        del x
        return ref() is None


@check
def gradients_freed(wrap):
    cls, refs = wrap(make.mul()), []
    with no_gc():
        x = leaf(3)
        inside = x * 2
        inside.register_hook(lambda g: refs.append(weakref.ref(g)))
        cls.apply(inside, inside.detach()).sum().backward()
        return [ref() is None for ref in refs]


@check
def class_freed(wrap):
    cls = wrap(make.keeping())
    cls.apply(leaf(3)).sum().backward()
    ref = weakref.ref(cls)
    del cls
    gc.collect()
    return ref() is None


@check
def func_grad(wrap):
    cls = wrap(make.cube())
    return bits(torch.func.grad(lambda x: cls.apply(x)[0].sum())(leaf(3).detach()))


@check
def func_vmap_generated(wrap):
    cls = wrap(make.cube())
    return bits(torch.func.vmap(lambda x: cls.apply(x)[0])(leaf(4, 3).detach()))


@check
def func_vmap_by_hand(wrap):
    cls = wrap(make.sine_by_hand())
    return bits(torch.func.vmap(cls.apply)(leaf(4, 3).detach()))


@check
def func_jvp(wrap):
    cls = wrap(make.cube())
    x = leaf(3).detach()
    return bits(torch.func.jvp(lambda x: cls.apply(x)[0], (x,), (torch.ones_like(x),)))


@check
def func_hessian(wrap):
    cls = wrap(make.cube())
    return bits(torch.func.hessian(lambda x: cls.apply(x)[0].sum())(leaf(2).detach()))


@check
def func_refuses_combined_style(wrap):
    cls = wrap(make.mul())
    return raised(lambda: torch.func.grad(lambda x: cls.apply(x, x).sum())(leaf(3).detach()))[:2]


@check
def func_refuses_without_vmap(wrap):
    cls = wrap(make.cube(generate=False))
    return raised(lambda: torch.func.vmap(lambda x: cls.apply(x)[0])(leaf(4, 3).detach()))[:2]


@check
def deep_recursion_error(wrap):
    def descend(n):
        return descend(n + 1)

    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return descend(0)

        @staticmethod
        def backward(ctx, g):
            return g

    wrap(Deep)
    return raised(lambda: Deep.apply(leaf(3)))[0]
