--- `:checkhealth adaexplore`
local M = {}

--- The command as configured; what it runs and where it logs is what a bug report needs.
---@return string[]?
local function command()
  local config = vim.lsp.config.adaexplore
  local cmd = config and config.cmd
  return type(cmd) == 'table' and cmd or nil
end

local function check_server()
  local cmd = command()
  if not cmd then
    vim.health.error('no command is configured', { "Is this plugin's folder on the 'runtimepath'?" })
    return
  end
  vim.health.info('command: ' .. table.concat(cmd, ' '))
  if vim.fn.executable(cmd[1]) == 0 then
    vim.health.error(cmd[1] .. ' is not found', {
      'Install it: pip install "adaexplore[search]"',
      "or name it: vim.lsp.config('adaexplore', { cmd = { '/path/to/adaexplore-lsp' } })",
    })
    return
  end
  local version = vim.list_extend(vim.list_slice(cmd), { '--version' })
  local started, result = pcall(function()
    return vim.system(version, { text = true }):wait(5000)
  end)
  if started and result.code == 0 then
    vim.health.ok(vim.trim(result.stdout))
  else
    vim.health.error(table.concat(version, ' ') .. ' failed', { started and result.stderr or result })
  end
end

local function check_clients()
  local clients = vim.lsp.get_clients({ name = 'adaexplore' })
  if #clients == 0 then
    vim.health.info("not attached: open a Python file after vim.lsp.enable('adaexplore')")
  end
  for _, client in ipairs(clients) do
    vim.health.ok(('attached to %d buffer(s), root %s'):format(
      vim.tbl_count(client.attached_buffers),
      client.root_dir or 'none'
    ))
  end
end

function M.check()
  vim.health.start('adaexplore')
  if vim.fn.has('nvim-0.11.3') == 0 then
    vim.health.error('Neovim 0.11.3 or newer is needed')
  end
  check_server()
  check_clients()
  vim.health.info('log: ' .. vim.lsp.log.get_filename())
end

return M
