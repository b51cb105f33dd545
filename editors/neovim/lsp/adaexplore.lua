---@brief
---
--- AdaExplore: verified, measured Triton kernels for PyTorch modules.
---
--- Needs `adaexplore-lsp` on the PATH (`pip install "adaexplore[search]"`). Enable with
--- `vim.lsp.enable('adaexplore')`; it runs beside your Python server. `:checkhealth adaexplore` tells what is missing.

---@type vim.lsp.Config
return {
  cmd = { 'adaexplore-lsp' },
  filetypes = { 'python' },
  root_markers = { 'pyproject.toml', 'setup.py', 'setup.cfg', '.git' },
  -- The server ends at once; a running search goes on by itself.
  exit_timeout = 2000,
  -- All are optional: python, steps, seconds, policy ('user' | 'strict' | 'tf32'), dataDir.
  settings = { adaexplore = {} },
  on_attach = function(_, bufnr)
    require('adaexplore.commands').attach(bufnr)
  end,
}
