--- Each action asks the server for its one code action at the cursor, and runs it.
local M = {}

local KIND = 'refactor.rewrite.adaexplore.'

---@param name 'optimize'|'cancel'|'insert'|'revert'
local function run(name)
  vim.lsp.buf.code_action({
    context = { only = { KIND .. name }, diagnostics = {} },
    apply = true,
  })
end

--- Start a search for the class at the cursor. The file must be saved.
function M.optimize()
  run('optimize')
end

--- End the search for the class at the cursor; it keeps the best so far.
function M.cancel()
  run('cancel')
end

--- Insert the best verified kernel: a sidecar file and one line above the class. `:wall` writes both.
function M.insert()
  run('insert')
end

--- Take the kernel out again.
function M.revert()
  run('revert')
end

return M
