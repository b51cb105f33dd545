import torch
import triton
import triton.language as tl


@triton.jit
def _masked_softmax_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def masked_softmax_kernel(
    scores_ptr,
    mask_ptr,
    out_ptr,
    n_rows,
    outer_size_1,
    outer_size_2,
    n_cols,
    scale: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """8 rows of ``out``; replaces lines 16-17 of masked_softmax.py."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    offsets = rows[:, None] * n_cols + cols[None, :]
    scores = tl.load(scores_ptr + offsets, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
    mask_value = tl.load(
        mask_ptr + rows[:, None] // (outer_size_1 * outer_size_2) * n_cols + cols[None, :], mask=mask, other=0
    )
    # line 16: scaled = scores * self.scale
    scaled = scores * scale
    # line 17: return torch.softmax(scaled.masked_fill(mask, float("-inf")), dim=-1)
    chosen = tl.where(mask_value, -float("inf"), scaled)
    largest = tl.reduce(tl.where(mask, chosen, -float("inf")), 1, _masked_softmax_max)[:, None]
    exps = tl.exp(chosen - largest)
    total = tl.sum(tl.where(mask, exps, 0.0), axis=1)[:, None]
    out = exps / total
    tl.store(out_ptr + offsets, out, mask=mask)


def masked_softmax_forward(module, scores, mask):
    """Compute what ``MaskedSoftmax.forward`` does."""
    out = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    n_rows = scores.shape[0] * scores.shape[1] * scores.shape[2]
    masked_softmax_kernel[(triton.cdiv(n_rows, 8),)](
        scores, mask, out, n_rows, scores.shape[1], scores.shape[2], scores.shape[3],
        scale=module.scale, ROWS=8, BLOCK=triton.next_power_of_2(scores.shape[3]), num_warps=2,
    )
    return out
