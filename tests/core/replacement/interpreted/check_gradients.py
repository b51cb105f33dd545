"""Gradients through the inserted kernel are eager's."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from .conftest import Inserted


def leaves(x: torch.Tensor, y: torch.Tensor, module: Any) -> dict[str, torch.Tensor]:
    return {"x": x, "y": y, **dict(module.named_parameters())}


def gradients(module: Any, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor | None]:
    x, y = (t.detach().clone().requires_grad_(t.requires_grad) for t in (x, y))
    module.zero_grad()
    out = module(x, y, 2, shift=0.25)
    if not out.requires_grad:
        return {}
    out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape))
    return {name: leaf.grad for name, leaf in leaves(x, y, module).items()}


def same(found: dict[str, torch.Tensor | None], wanted: dict[str, torch.Tensor | None]) -> None:
    assert list(found) == list(wanted)
    for name, grad in wanted.items():
        assert (found[name] is None) == (grad is None), name
        if grad is not None:
            torch.testing.assert_close(found[name], grad)


@pytest.mark.parametrize("inputs", [(True, True), (True, False), (False, False)], ids=str)
@pytest.mark.parametrize("frozen", [(), ("weight",), ("weight", "gain.weight")], ids=str)
def test_first_order(
    inserted: Inserted, x: torch.Tensor, y: torch.Tensor, inputs: tuple[bool, bool], frozen: tuple[str, ...]
) -> None:
    ours, plain = inserted.pair()
    for module in (ours, plain):
        for name in frozen:
            module.get_parameter(name).requires_grad_(False)
    x.requires_grad_(inputs[0])
    y.requires_grad_(inputs[1])
    found, launched = inserted.launched(lambda: gradients(ours, x, y))
    assert launched == 1
    same(found, gradients(plain, x, y))


def test_second_order(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    found = []
    for module in (ours, plain):
        a = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(module(a, y, 2, shift=0.25).sum(), a, create_graph=True)
        penalty = first.square().sum()
        found.append(torch.autograd.grad(penalty, [a, module.weight, module.gain.weight]))
    for ours_grad, plain_grad in zip(*found, strict=True):
        torch.testing.assert_close(ours_grad, plain_grad)


def test_two_steps_of_an_optimizer(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    for module in (ours, plain):
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            module(x, y, 2, shift=0.25).square().mean().backward()
            optimizer.step()
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)


def test_no_gradient_where_none_is_wanted(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    x.requires_grad_()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            out, launched = inserted.launched(lambda: ours(x, y, 2, shift=0.25))
            wanted = plain(x, y, 2, shift=0.25)
        assert launched == 1
        assert (out.requires_grad, out.is_inference()) == (wanted.requires_grad, wanted.is_inference())
        torch.testing.assert_close(out, wanted)


def test_inference_tensors_outside_inference_mode(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    with torch.inference_mode():
        a, b = x.clone(), y.clone()
    for module in (ours, plain):
        module.requires_grad_(False)
    torch.testing.assert_close(ours(a, b, 2, shift=0.25), plain(a, b, 2, shift=0.25))


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint(inserted: Inserted, x: torch.Tensor, y: torch.Tensor, use_reentrant: bool) -> None:
    ours, plain = inserted.pair()
    found = []
    for module in (ours, plain):
        a = x.clone().requires_grad_()
        out = checkpoint(lambda t, m=module: m(t, y, 2, shift=0.25), a, use_reentrant=use_reentrant)
        out.sum().backward()
        found.append((a.grad, module.weight.grad))
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("what", ["weight", "input"])
def test_a_change_in_place_before_backward_raises_as_eager_does(
    inserted: Inserted, x: torch.Tensor, y: torch.Tensor, what: str
) -> None:
    for module in inserted.pair():
        a = x.clone().requires_grad_()
        b = (a * 1.0) if what == "input" else y
        out = module(a, b, 2, shift=0.25)
        with torch.no_grad():
            (module.weight if what == "weight" else b).add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_a_changed_attribute_before_backward_raises(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, _ = inserted.pair()
    out = ours(x, y, 2, shift=0.25)
    ours.eps = 0.5
    with pytest.raises(RuntimeError, match="Mixed was changed between its forward and its backward"):
        out.sum().backward()


def test_backward_twice(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    for module in inserted.pair():
        out = module(x, y, 2, shift=0.25).sum()
        out.backward(retain_graph=True)
        once = module.weight.grad.clone()
        out.backward()
        torch.testing.assert_close(module.weight.grad, once * 2)
        with pytest.raises(RuntimeError, match="second time"):
            out.backward()


def test_gradients_accumulate_over_shared_weights(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    found = []
    for module in inserted.pair():
        module.gain.weight = module.weight  # tied
        a = x.clone().requires_grad_()
        module(a, a, 2, shift=0.25).sum().backward()
        found.append((a.grad, module.weight.grad))
    torch.testing.assert_close(found[0], found[1])


def test_gradients_through_two_calls_of_one_module(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    """The second call's input depends on the weight, too: neither path may count twice."""
    found = []
    for module in inserted.pair():
        a = (x * 0.1).requires_grad_()
        hidden = module(a, module.weight.expand_as(x).contiguous(), 2, shift=0.25)
        module(hidden, y, 2, shift=0.25).sum().backward()
        found.append((a.grad, module.weight.grad, module.gain.weight.grad))
    torch.testing.assert_close(found[0], found[1])


def test_a_parameter_as_input(inserted: Inserted) -> None:
    found = []
    for module in inserted.pair():
        module.offset = torch.rand(24).fill_(0.5)
        a = nn.Parameter(torch.linspace(-1, 1, 96).view(2, 2, 24))
        module(a, a * 2, 2, shift=0.25).sum().backward()
        found.append((a.grad, module.weight.grad))
    torch.testing.assert_close(found[0], found[1])


def test_the_parameters_are_in_their_places_after_backward(
    inserted: Inserted, x: torch.Tensor, y: torch.Tensor
) -> None:
    ours, _ = inserted.pair()
    before = [(name, id(p)) for name, p in ours.named_parameters()]
    out = ours(x, y, 2, shift=0.25).sum()
    ours.helper = lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError):
        out.backward()
    assert [(name, id(p)) for name, p in ours.named_parameters()] == before


def test_backward_under_autocast(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    """What is computed again is computed as it was: without autocast."""
    ours, plain = inserted.pair()
    out = ours(x, y, 2, shift=0.25).sum()
    seen = []

    def helper(z: torch.Tensor) -> torch.Tensor:
        seen.append(torch.is_autocast_enabled("cpu"))
        return plain.helper(z)

    ours.helper = helper
    with torch.autocast("cpu", torch.bfloat16):
        out.backward()
    assert seen == [False]


def test_hooks_on_parameters_and_outputs_fire(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    for module in inserted.pair():
        seen: list[str] = []
        module.weight.register_hook(lambda g, s=seen: s.append("weight"))
        module.weight.register_post_accumulate_grad_hook(lambda p, s=seen: s.append("accumulated"))
        module.register_full_backward_hook(lambda m, i, o, s=seen: s.append("module"))
        a = x.clone().requires_grad_()
        module(a, y, 2, shift=0.25).sum().backward()
        assert sorted(seen) == ["accumulated", "module", "weight"]


def test_saved_tensors_hooks_see_what_is_kept(inserted: Inserted, x: torch.Tensor, y: torch.Tensor) -> None:
    ours, plain = inserted.pair()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        out = ours(x.requires_grad_(), y, 2, shift=0.25).sum()
    out.backward()
    plain(x.detach(), y, 2, shift=0.25).sum().backward()
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad)
