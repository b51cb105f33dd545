import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_mlp_layer_norm_kernel(
    x_ptr,
    norm_weight_ptr,
    norm_bias_ptr,
    layer_norm_ptr,
    n_rows,
    n_cols: tl.constexpr,
    norm_eps: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """16 rows of ``layer_norm``; replaces line 19 of layer_norm_mlp.py."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    offsets = rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0, eviction_policy="evict_last")
    norm_weight = tl.load(norm_weight_ptr + cols, mask=cols < n_cols, other=0.0)[None, :]
    norm_bias = tl.load(norm_bias_ptr + cols, mask=cols < n_cols, other=0.0)[None, :]
    # line 19: hidden = F.gelu(self.up(self.norm(x)))
    mean = tl.sum(x, axis=1)[:, None] / n_cols
    centred = x - mean
    variance = tl.sum(tl.where(mask, centred * centred, 0.0), axis=1)[:, None] / n_cols
    layer_norm = centred * tl.rsqrt(variance + norm_eps) * norm_weight + norm_bias
    tl.store(layer_norm_ptr + offsets, layer_norm, mask=mask)


@triton.jit
def layer_norm_mlp_hidden_kernel(
    layer_norm_tiles,
    up_weight_tiles,
    up_bias_ptr,
    hidden_ptr,
    n_rows,
    n_ins: tl.constexpr,
    n_outs: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One tile of ``hidden`` at a time; replaces line 19 of layer_norm_mlp.py."""
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
    # line 19: hidden = F.gelu(self.up(self.norm(x)))
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, n_ins, BLOCK_K):
        layer_norm_tile = layer_norm_tiles.load([start_m, k])
        up_weight_tile = up_weight_tiles.load([start_n, k])
        acc = tl.dot(layer_norm_tile, up_weight_tile.T, acc, input_precision="ieee")
    mask = (rows < n_rows)[:, None] & (outs < n_outs)[None, :]
    offsets = rows.to(tl.int64)[:, None] * n_outs + outs[None, :]
    up_bias = tl.load(up_bias_ptr + outs, mask=outs < n_outs, other=0.0)[None, :]
    linear = acc + up_bias
    hidden = 0.5 * linear * (1.0 + tl.erf(linear * 0.7071067811865476))
    tl.store(hidden_ptr + offsets, hidden, mask=mask)


@triton.jit
def layer_norm_mlp_out_kernel(
    hidden_tiles,
    down_weight_tiles,
    down_bias_ptr,
    out_ptr,
    n_rows,
    n_ins: tl.constexpr,
    n_outs: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One tile of ``out`` at a time; replaces line 20 of layer_norm_mlp.py."""
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
    # line 20: return self.down(hidden)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, n_ins, BLOCK_K):
        hidden_tile = hidden_tiles.load([start_m, k])
        down_weight_tile = down_weight_tiles.load([start_n, k])
        acc = tl.dot(hidden_tile, down_weight_tile.T, acc, input_precision="ieee")
    mask = (rows < n_rows)[:, None] & (outs < n_outs)[None, :]
    offsets = rows.to(tl.int64)[:, None] * n_outs + outs[None, :]
    down_bias = tl.load(down_bias_ptr + outs, mask=outs < n_outs, other=0.0)[None, :]
    out = acc + down_bias
    tl.store(out_ptr + offsets, out, mask=mask)


def layer_norm_mlp_forward(module, x):
    """Compute what ``LayerNormMLP.forward`` does; weights are read from ``module`` at each call."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    norm_weight = module.norm.weight
    norm_bias = module.norm.bias
    up_weight = module.up.weight
    up_bias = module.up.bias
    down_weight = module.down.weight
    down_bias = module.down.bias
    layer_norm = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows = x.shape[0] * x.shape[1]
    layer_norm_mlp_layer_norm_kernel[(triton.cdiv(n_rows, 16),)](
        x, norm_weight, norm_bias, layer_norm, n_rows,
        n_cols=64, norm_eps=module.norm.eps, ROWS=16, BLOCK=64, num_warps=2,
    )

    n_ins, n_outs = 64, 256
    layer_norm_rows = layer_norm.view(-1, n_ins)
    hidden = torch.empty((x.shape[0], x.shape[1], 256), dtype=x.dtype, device=x.device)
    layer_norm_tiles = TensorDescriptor.from_tensor(layer_norm_rows, [64, 32])
    up_weight_tiles = TensorDescriptor.from_tensor(up_weight, [128, 32])
    layer_norm_mlp_hidden_kernel[(triton.cdiv(n_rows, 64) * triton.cdiv(n_outs, 128),)](
        layer_norm_tiles, up_weight_tiles, up_bias, hidden, n_rows,
        n_ins=n_ins, n_outs=n_outs, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, num_warps=8, num_stages=3,
    )

    n_ins, n_outs = 256, 64
    hidden_rows = hidden.view(-1, n_ins)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    hidden_tiles = TensorDescriptor.from_tensor(hidden_rows, [64, 32])
    down_weight_tiles = TensorDescriptor.from_tensor(down_weight, [128, 32])
    layer_norm_mlp_out_kernel[(triton.cdiv(n_rows, 64) * triton.cdiv(n_outs, 128),)](
        hidden_tiles, down_weight_tiles, down_bias, out, n_rows,
        n_ins=n_ins, n_outs=n_outs, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, num_warps=8, num_stages=3,
    )
    return out
