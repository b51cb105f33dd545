import torch
import triton
import triton.language as tl


@triton.jit
def long_rms_norm_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    x_row_stride,
    n_cols: tl.constexpr,
    eps: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row of ``out``; replaces lines 17-18 of long_rms_norm.py."""
    row = tl.program_id(0).to(tl.int64)
    mean_partial = tl.full((BLOCK,), 0.0, tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        mean_partial += x * x
    # line 17: scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
    mean = tl.sum(mean_partial, axis=0) / n_cols
    scale = tl.rsqrt(mean + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        offsets = row * n_cols + cols
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0, eviction_policy="evict_first")
        weight = tl.load(weight_ptr + cols, mask=cols < n_cols, other=0.0)
        # line 18: return x * scale * (1 + self.weight)
        out = x * scale * (weight + 1)
        tl.store(out_ptr + offsets, out, mask=mask)


def long_rms_norm_forward(module, x):
    """Compute what ``LongRMSNorm.forward`` does; weights are read from ``module`` at each call."""
    weight = module.weight
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows = x.shape[0]
    long_rms_norm_kernel[(n_rows,)](
        x, weight, out, x.stride(0),
        n_cols=40000, eps=module.eps, BLOCK=2048, num_warps=8,
    )
    return out
