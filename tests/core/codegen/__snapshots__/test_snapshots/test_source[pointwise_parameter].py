import torch
import triton
import triton.language as tl


@triton.jit
def gelu_bias_kernel(x_ptr, bias_ptr, out_ptr, n_elements, size_1: tl.constexpr, BLOCK: tl.constexpr):
    """One block of ``out``; replaces line 17 of gelu_bias.py."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + offsets % size_1, mask=mask, other=0.0)
    # line 17: return F.gelu(x + self.bias)
    added = x + bias
    out = 0.5 * added * (1.0 + tl.erf(added * 0.7071067811865476))
    tl.store(out_ptr + offsets, out, mask=mask)


def gelu_bias_forward(module, x):
    """Compute what ``GELUBias.forward`` does; weights are read from ``module`` at each call."""
    bias = module.bias
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_elements = x.shape[0] * 300
    gelu_bias_kernel[(triton.cdiv(n_elements, 256),)](
        x.contiguous(), bias, out, n_elements,
        size_1=300, BLOCK=256, num_warps=4,
    )
    return out
