import torch
import triton
import triton.language as tl


@triton.jit
def linear_silu_kernel(
    x_tiles,
    weight_tiles,
    bias_ptr,
    out_ptr,
    n_rows,
    first_out,
    last_out,
    n_ins: tl.constexpr,
    n_outs: tl.constexpr,
    N_PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One tile of ``out`` at a time; replaces line 17 of linear_silu.py."""
    n_tiles_m = tl.cdiv(n_rows, BLOCK_M)
    n_tiles_n = tl.cdiv(last_out - first_out, BLOCK_N)
    for tile in tl.range(tl.program_id(0), n_tiles_m * n_tiles_n, N_PROGRAMS, flatten=True):
        # Tiles at work at the same time share rows and weights in L2: walk GROUP_M tiles down, then right.
        first_m = tile // (GROUP_M * n_tiles_n) * GROUP_M
        group_size = tl.minimum(n_tiles_m - first_m, GROUP_M)
        start_m = (first_m + tile % (GROUP_M * n_tiles_n) % group_size) * BLOCK_M
        start_n = first_out + tile % (GROUP_M * n_tiles_n) // group_size * BLOCK_N
        rows = start_m + tl.arange(0, BLOCK_M)
        outs = start_n + tl.arange(0, BLOCK_N)
        # line 17: return F.silu(self.up(x))
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, n_ins, BLOCK_K):
            x_tile = x_tiles.load([start_m, k])
            weight_tile = weight_tiles.load([start_n, k])
            acc = tl.dot(x_tile, weight_tile.T, acc, input_precision="tf32x3")
        mask = (rows < n_rows)[:, None] & (outs < last_out)[None, :]
        offsets = rows.to(tl.int64)[:, None] * n_outs + outs[None, :]
        bias = tl.load(bias_ptr + outs, mask=outs < n_outs, other=0.0)[None, :]
        linear = acc + bias
        out = linear * tl.sigmoid(linear)
        tl.store(out_ptr + offsets, out, mask=mask)


def linear_silu_forward(module, x):
    """Compute what ``LinearSiLU.forward`` does; weights are read from ``module`` at each call."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    weight = module.up.weight
    bias = module.up.bias
    n_rows = x.shape[0]
    n_ins, n_outs = 128, 352
    out = torch.empty((x.shape[0], 352), dtype=x.dtype, device=x.device)
    # Columns that fill whole waves of 132 programs; the rest is computed in smaller tiles.
    tiles_down = triton.cdiv(n_rows, 64)
    n_waves = tiles_down * triton.cdiv(n_outs, 128) // 132
    split = min(n_outs, n_waves * 132 // tiles_down * 128)
    if split > 0:
        x_tiles = TensorDescriptor.from_tensor(x, [64, 64])
        weight_tiles = TensorDescriptor.from_tensor(weight, [128, 64])
        linear_silu_kernel[(min(132, triton.cdiv(n_rows, 64) * triton.cdiv(split, 128)),)](
            x_tiles, weight_tiles, bias, out, n_rows, 0, split,
            n_ins=n_ins, n_outs=n_outs, N_PROGRAMS=132, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=8,
            num_stages=3,
        )
    if split < n_outs:
        x_tiles = TensorDescriptor.from_tensor(x, [32, 64])
        weight_tiles = TensorDescriptor.from_tensor(weight, [64, 64])
        linear_silu_kernel[(min(132, triton.cdiv(n_rows, 32) * triton.cdiv(n_outs - split, 64)),)](
            x_tiles, weight_tiles, bias, out, n_rows, split, n_outs,
            n_ins=n_ins, n_outs=n_outs, N_PROGRAMS=132, BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, GROUP_M=8, num_warps=4,
            num_stages=3,
        )
    return out
