"""When the kernel runs, and when the original does. Either way the numbers are the original's."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from .conftest import Inserted

Change = Callable[[Any], Any]
torch_jit = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning", "ignore:.*:torch.jit.TracerWarning")


def agree(inserted: Inserted, ours: Any, plain: Any, *args: Any, launches: int, **kwargs: Any) -> None:
    result, launched = inserted.launched(lambda: ours(*args, **kwargs))
    torch.testing.assert_close(result, plain(*args, **kwargs))
    assert launched == launches


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (lambda x, y: (x, y, 2), {"shift": 0.25}),
        (lambda x, y: (x[:1], y[:1], 2), {"shift": 0.25}),
        (lambda x, y: (x[:3, :5].contiguous(), y[:3, :5].contiguous(), 2), {"shift": 0.25}),
        (lambda x, y: (x, y), {"power": 2, "shift": 0.25}),
        (lambda x, y: (nn.Parameter(x), y, 2), {"shift": 0.25}),
        (lambda x, y: (x, x, 2), {"shift": 0.25}),
    ],
    ids=["as captured", "one row", "other sizes", "by keyword", "a parameter", "one tensor twice"],
)
def test_the_kernel_runs(inserted: Inserted, x: torch.Tensor, y: torch.Tensor, args: Any, kwargs: Any) -> None:
    ours, plain = inserted.pair()
    agree(inserted, ours, plain, *args(x, y), launches=1, **kwargs)


class Subclassed(torch.Tensor):
    pass


CALLS: dict[str, tuple[Change, dict[str, Any]]] = {
    "another literal": (lambda t: (t, t, 3), {"shift": 0.25}),
    "a literal of another type": (lambda t: (t, t, 2.0), {"shift": 0.25}),
    "a tensor for a literal": (lambda t: (t, t, torch.tensor(2)), {"shift": 0.25}),
    "literals left to their defaults": (lambda t: (t, t), {}),
    "another keyword-only literal": (lambda t: (t, t, 2), {"shift": 0.5}),
    "a tensor of several for a literal": (lambda t: (t, t, 2), {"shift": torch.rand(24)}),
    "float64": (lambda t: (t.double(), t, 2), {"shift": 0.25}),
    "half": (lambda t: (t.half(), t.half(), 2), {"shift": 0.25}),
    "integers": (lambda t: (t.int(), t, 2), {"shift": 0.25}),
    "other rank": (lambda t: (t[0], t[0], 2), {"shift": 0.25}),
    "sizes that broadcast": (lambda t: (t, t[:1], 2), {"shift": 0.25}),
    "sizes that broadcast, the first": (lambda t: (t[:1], t, 2), {"shift": 0.25}),
    "one column": (lambda t: (t[..., :1].contiguous(), t, 2), {"shift": 0.25}),
    "transposed": (lambda t: (t.transpose(0, 1), t.transpose(0, 1), 2), {"shift": 0.25}),
    "every second": (lambda t: (t[:, ::2], t[:, ::2], 2), {"shift": 0.25}),
    "expanded": (lambda t: (t[:1].expand(4, 6, 24), t, 2), {"shift": 0.25}),
    "empty": (lambda t: (t[:0], t[:0], 2), {"shift": 0.25}),
    "a subclass of Tensor": (lambda t: (t.as_subclass(Subclassed), t, 2), {"shift": 0.25}),
    "a subclass second": (lambda t: (t, t.as_subclass(Subclassed), 2), {"shift": 0.25}),
}


@pytest.mark.parametrize(("args", "kwargs"), CALLS.values(), ids=list(CALLS))
def test_the_original_runs_for_other_calls(inserted: Inserted, x: torch.Tensor, args: Change, kwargs: Any) -> None:
    ours, plain = inserted.pair()
    agree(inserted, ours, plain, *args(x), launches=0, **kwargs)


class LoRA(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1


def attribute(name: str, value: Any) -> Change:
    def change(module: Any) -> None:
        *path, last = name.split(".")
        for part in path:
            module = getattr(module, part)
        setattr(module, last, value)

    return change


def hook(method: str, *owner: str) -> Change:
    def change(module: Any) -> None:
        for name in owner:
            module = getattr(module, name)
        if method == "register_forward_pre_hook":
            module.register_forward_pre_hook(lambda m, a: (a[0] + 1, *a[1:]))
        elif method == "register_full_backward_hook":
            module.register_full_backward_hook(lambda m, i, o: None)
        else:
            module.register_forward_hook(lambda m, a, out: out + 1)

    return change


CHANGES: dict[str, Change] = {
    "eps": attribute("eps", 0.5),
    "eps as integer": attribute("eps", 1),
    "eps as tensor": attribute("eps", torch.tensor(0.125)),
    "eps as several": attribute("eps", torch.rand(24)),
    "eps as parameter": lambda m: (delattr(m, "eps"), setattr(m, "eps", nn.Parameter(torch.tensor(0.5)))),
    "flag": attribute("flag", False),
    "flag as number": attribute("flag", 0),
    "tuple": attribute("limits", (3, 2)),
    "tuple shorter": attribute("limits", (3,)),
    "tuple of floats": attribute("limits", (1.5, 2)),
    "tuple as tensor": attribute("limits", torch.tensor([3.0, 2.0])),
    "eval": lambda m: m.eval(),
    "submodule replaced": lambda m: setattr(m, "gain", LoRA(m.gain)),
    "submodule hooked": hook("register_forward_hook", "gain"),
    "submodule pre-hooked": hook("register_forward_pre_hook", "gain"),
    "submodule hooked for backward": hook("register_full_backward_hook", "gain"),
    "submodule's forward patched": lambda m: setattr(m.gain, "forward", lambda x: x * 5),
    "a layer added": lambda m: m.layers.append(nn.Tanh()),
    "a layer removed": lambda m: m.layers.pop(0),
    "a layer replaced": lambda m: m.layers.__setitem__(0, nn.Tanh()),
    "a bias where there was none": attribute("gain.bias", nn.Parameter(torch.rand(24))),
    "an attribute that was not there": attribute("adapter", True),
    "parameter of another dtype": attribute("weight", nn.Parameter(torch.rand(24).double())),
    "parameter of another shape": attribute("weight", nn.Parameter(torch.rand(1))),
    "parameter with strides": attribute("weight", nn.Parameter(torch.rand(48)[::2])),
    "parameter of a subclass": lambda m: setattr(
        m, "weight", nn.Parameter(torch.rand(24).as_subclass(Subclassed), requires_grad=False)
    ),
    "to float64": lambda m: m.double(),
    "half": lambda m: m.half(),
    "buffer of another shape": attribute("offset", torch.rand(4, 6, 24)),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_the_original_runs_once_the_module_has_changed(
    inserted: Inserted, x: torch.Tensor, y: torch.Tensor, change: Change
) -> None:
    ours, plain = inserted.pair()
    torch.manual_seed(0)
    change(ours)
    torch.manual_seed(0)
    change(plain)
    for a, b in zip(ours.state_dict().values(), plain.state_dict().values(), strict=True):
        b.copy_(a)
    agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=0)


def test_parametrizations_are_the_originals_business(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    class Doubled(nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * 2

    for owner in (lambda m: m.gain, lambda m: m):
        ours, plain = inserted.pair()
        for module in (ours, plain):
            torch.nn.utils.parametrize.register_parametrization(owner(module), "weight", Doubled())
        agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=0)


def test_globals(inserted: Inserted, x: torch.Tensor, y: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, plain = inserted.pair()
    for target, name, value in ((None, "FACTOR", 3.0), ("CONFIG", "bias", 0.75), (None, "CONFIG", None)):
        for module in (inserted.ours, inserted.plain):
            changed = getattr(module, target) if target else module
            new = type("GainConfig", (), {"bias": 2.0})() if name == "CONFIG" else value
            monkeypatch.setattr(changed, name, new)
        agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=0)
        monkeypatch.undo()
        agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=1)


def test_a_subclass_runs_the_original(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    def derive(base: Any) -> Any:
        return type("Derived", (base,), {"helper": lambda self, x: x * 7})(24)

    ours, plain = derive(inserted.ours.Mixed), derive(inserted.plain.Mixed)
    ours.load_state_dict(plain.state_dict())
    agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=0)


def test_weights_are_read_at_each_call(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    for step in range(3):
        with torch.no_grad():
            for module in (ours, plain):
                module.weight.add_(step)
                module.gain.weight.data = torch.full((24,), float(step))
        agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=1)


@torch_jit
def test_other_systems_get_the_original(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()

    def none(call: Callable[[Any], Any]) -> None:
        result, launched = inserted.launched(lambda: call(ours))
        torch.testing.assert_close(result, call(plain))
        assert launched == 0

    def in_autocast(m: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return m(x, y, 2, shift=0.25)

    none(in_autocast)
    none(lambda m: torch.vmap(lambda a, b: m(a, b, 2, shift=0.25), in_dims=0)(x[None], y[None]))
    none(lambda m: torch.func.grad(lambda a: m(a, y, 2, shift=0.25).sum())(x))
    none(lambda m: torch.func.jvp(lambda a: m(a, y, 2, shift=0.25), (x,), (y,)))
    none(
        lambda m: torch.func.functional_call(
            m, {k: v.double() for k, v in m.state_dict().items()}, (x, y, 2), {"shift": 0.25}
        )
    )
    none(lambda m: torch.jit.trace(Fixed(m), (x, y), check_trace=False)(x, y))


class Fixed(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.inner(x, y, 2, shift=0.25)


@torch_jit
def test_forward_mode_gradients_get_the_original(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, y)
        found, wanted = (
            torch.autograd.forward_ad.unpack_dual(m(dual, y, 2, shift=0.25)).tangent for m in (ours, plain)
        )
    assert found is not None
    torch.testing.assert_close(found, wanted)


def test_fake_and_meta_tensors_get_the_original(inserted: Inserted) -> None:
    ours, _ = inserted.pair()
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake = torch.empty(4, 6, 24)
        result, launched = inserted.launched(lambda: ours(fake, fake, 2, shift=0.25))
    assert (tuple(result.shape), launched) == ((4, 6, 24), 0)
    meta = torch.empty(4, 6, 24, device="meta")
    result, launched = inserted.launched(lambda: ours.to("meta")(meta, meta, 2, shift=0.25))
    assert (result.device.type, launched) == ("meta", 0)


class Seeing(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_the_originals_operators(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    seen = []
    for module in inserted.pair():
        with Seeing() as mode:
            _, launched = inserted.launched(lambda m=module: m(x, y, 2, shift=0.25))  # type: ignore[misc]
        assert launched == 0
        seen.append(mode.seen)
    assert seen[0] == seen[1]


def test_deferred_and_exported(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    exported, launched = inserted.launched(
        lambda: torch.export.export(ours, (x, y, 2), {"shift": 0.25}, strict=False).module()(x, y, 2, shift=0.25)
    )
    torch.testing.assert_close(exported, plain(x, y, 2, shift=0.25))
    assert launched == 0


def test_torch_compile_traces_through(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    agree(inserted, compiled, plain, x, y, 2, shift=0.25, launches=0)
    with torch.no_grad():
        agree(inserted, compiled, plain, x, y, 2, shift=0.25, launches=0)


@torch_jit
def test_torch_jit_script(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    decorated = sys.modules["subject_triton"].triton_mixed(inserted.ours.Scripted)
    scripted, launched = inserted.launched(lambda: torch.jit.script(decorated())(x, y, 2, shift=0.25))
    torch.testing.assert_close(scripted, inserted.plain.Scripted()(x, y, 2, shift=0.25))
    assert launched == 0


def test_hooks_on_the_module_itself_still_fire(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    for module in (ours, plain):
        hook("register_forward_hook")(module)
        hook("register_forward_pre_hook")(module)
    agree(inserted, ours, plain, x, y, 2, shift=0.25, launches=1)


def test_the_class_stays_what_it_is(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    import inspect

    ours, plain = inserted.pair()
    cls, own = inserted.ours.Mixed, inserted.plain.Mixed
    assert isinstance(ours, cls)
    assert cls.__mro__[1:] == own.__mro__[1:]
    assert (cls.__name__, cls.__qualname__, cls.__doc__) == (own.__name__, own.__qualname__, own.__doc__)
    assert inspect.signature(cls.forward) == inspect.signature(own.forward)
    assert list(ours.state_dict()) == list(plain.state_dict())
    assert ours.training
    assert list(vars(ours)) == list(vars(plain))
    assert ours.load_state_dict(plain.state_dict(), strict=True).missing_keys == []
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(twin) is cls
        agree(inserted, twin, plain, x, y, 2, shift=0.25, launches=1)


def test_errors_are_the_originals(inserted: Inserted, x: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    for call in (
        lambda m: m(x),
        lambda m: m(x, x, 2, 0.25),
        lambda m: m(x, None, 2, shift=0.25),
        lambda m: m(None, x, 2, shift=0.25),
        lambda m: m(x, x[..., :5], 2, shift=0.25),
        lambda m: m("x", x, 2, shift=0.25),
        lambda m: (delattr(m, "eps"), m(x, x, 2, shift=0.25)),
        lambda m: (setattr(m, "gain", None), m(x, x, 2, shift=0.25)),
        lambda m: (setattr(m, "layers", None), m(x, x, 2, shift=0.25)),
    ):
        errors = []
        for module in (ours, plain):
            with pytest.raises(Exception) as caught:  # noqa: PT011 - any, as long as it is the same
                call(module)
            errors.append(caught.type)
        assert errors[0] is errors[1]


@pytest.mark.parametrize("missing", ["triton", "interpret"])
def test_without_triton_or_a_gpu_the_original_runs(inserted: Inserted, missing: str) -> None:
    script = (
        f"import sys\nsys.path.insert(0, {str(inserted.path.parent)!r})\n"
        + ("sys.modules['triton'] = None\n" if missing == "triton" else "")
        + "import subject, torch\n"
        "m = subject.Mixed(24)\nx = torch.randn(4, 6, 24)\n"
        "a = m(x, x, 2, shift=0.25)\n"
        "b = subject.Mixed.forward.__wrapped__(m, x, x, 2, shift=0.25)\n"
        "assert torch.equal(a, b)\n"
        "import subject_triton\nassert subject_triton.HAS_TRITON == (sys.argv[1] != 'triton')\n"
        "print('fine')\n"
    )
    env = {"TRITON_INTERPRET": "1"} if missing == "triton" else {}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, missing], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "fine\n", done.stderr
