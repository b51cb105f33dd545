import torch
import triton
import triton.language as tl


@triton.jit
def model_kernel(x_ptr, out_ptr, x_row_stride, n_cols, eps: tl.constexpr, BLOCK: tl.constexpr):
    """One row of ``out``; replaces line 16 of kernelbench_style.py."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    offsets = row * n_cols + cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0)
    # line 16: return x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + self.eps)
    mean = tl.sum(x * x, axis=0) / n_cols
    out = x / tl.sqrt(mean + eps)
    tl.store(out_ptr + offsets, out, mask=mask)


def model_forward(module, x):
    """Compute what ``Model.forward`` does."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows = x.shape[0]
    model_kernel[(n_rows,)](
        x, out, x.stride(0), x.shape[1],
        eps=module.eps, BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=2,
    )
    return out
