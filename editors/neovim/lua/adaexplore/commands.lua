--- `:AdaExplore optimize|cancel|insert|revert`, in buffers the server is attached to.
local M = {}

local NAMES = { 'optimize', 'cancel', 'insert', 'revert' }

---@param bufnr integer
function M.attach(bufnr)
  vim.api.nvim_buf_create_user_command(bufnr, 'AdaExplore', function(command)
    if not vim.list_contains(NAMES, command.args) then
      vim.notify('AdaExplore: one of ' .. table.concat(NAMES, ', ') .. ' is wanted', vim.log.levels.ERROR)
      return
    end
    require('adaexplore')[command.args]()
  end, {
    nargs = 1,
    desc = 'AdaExplore: optimize, cancel, insert or revert at the cursor',
    complete = function(prefix)
      return vim.tbl_filter(function(name)
        return vim.startswith(name, prefix)
      end, NAMES)
    end,
  })
end

return M
