import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_temperature_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def softmax_temperature_kernel(
    logits_ptr,
    out_ptr,
    logits_row_stride,
    n_cols,
    temperature: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row of ``out``; replaces line 16 of softmax_temperature.py."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    offsets = row * n_cols + cols
    logits = tl.load(logits_ptr + row * logits_row_stride + cols, mask=mask, other=0.0, eviction_policy="evict_last")
    # line 16: return torch.softmax(logits / self.temperature, dim=-1)
    ratio = logits / temperature
    largest = tl.reduce(tl.where(mask, ratio, -float("inf")), 0, _softmax_temperature_max)
    exps = tl.exp(ratio - largest)
    total = tl.sum(tl.where(mask, exps, 0.0), axis=0)
    out = exps / total
    tl.store(out_ptr + offsets, out, mask=mask)


def softmax_temperature_forward(module, logits):
    """Compute what ``SoftmaxTemperature.forward`` does."""
    out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    n_rows = logits.shape[0]
    softmax_temperature_kernel[(n_rows,)](
        logits, out, logits.stride(0), logits.shape[1],
        temperature=module.temperature, BLOCK=triton.next_power_of_2(logits.shape[1]), num_warps=2,
    )
    return out
