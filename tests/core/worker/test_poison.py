"""Fresh memory is full of poison and stands between guards."""

import pytest
import torch

from adaexplore.worker.poison import PoisonedMemory, is_poison

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int8, torch.uint8]


def beside(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """Give the element ``offset`` away from the first, wherever that is."""
    return tensor.as_strided((1,), (1,), tensor.storage_offset() + offset)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["empty", "empty_like", "new_empty", "empty_strided", "empty of two sizes"])
def test_fresh_memory_is_poison(dtype: torch.dtype, how: str) -> None:
    source = torch.ones(3, 5, dtype=dtype)
    with PoisonedMemory() as memory:
        made = {
            "empty": lambda: torch.empty((3, 5), dtype=dtype),
            "empty_like": lambda: torch.empty_like(source),
            "new_empty": lambda: source.new_empty((3, 5)),
            "empty_strided": lambda: torch.empty_strided((3, 5), (5, 1), dtype=dtype),
            "empty of two sizes": lambda: torch.empty(3, 5, dtype=dtype),
        }[how]()
    assert (made.shape, made.dtype, made.is_contiguous()) == ((3, 5), dtype, True)
    assert is_poison(made).all()
    assert not memory.writes_outside()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [-256, -1, 15, 15 + 255])
def test_a_write_beside_is_seen(dtype: torch.dtype, offset: int) -> None:
    with PoisonedMemory() as memory:
        made = torch.empty((3, 5), dtype=dtype)
    made.fill_(1)
    assert not memory.writes_outside()
    beside(made, offset).fill_(0)
    assert memory.writes_outside()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_alignment_stays_what_triton_relies_on(dtype: torch.dtype, size: int) -> None:
    with PoisonedMemory():
        assert torch.empty(size, dtype=dtype).data_ptr() % 16 == 0


def test_other_ways_to_make_tensors_keep_their_values() -> None:
    with PoisonedMemory() as memory:
        assert torch.equal(torch.zeros(3), torch.tensor([0.0, 0.0, 0.0]))
        assert torch.equal(torch.full((2,), 5.0), torch.tensor([5.0, 5.0]))
        assert not torch.ones(4).isnan().any()
        assert torch.empty(0).shape == (0,)
        strided = torch.empty_strided((3, 5), (1, 3))
        assert strided.stride() == (1, 3)
        assert torch.empty(2, dtype=torch.bool).dtype is torch.bool
        total = torch.arange(5.0).sum() * 2
    assert total == 20
    assert not memory.writes_outside()


def test_a_scalar_is_guarded_too() -> None:
    with PoisonedMemory() as memory:
        made = torch.empty(())
    assert made.shape == ()
    beside(made, 1).fill_(0)
    assert memory.writes_outside()
