-- SPDX-License-Identifier: GPL-2.0-or-later
-- Starts spile's language server for SystemTap scripts in Neovim (0.7 and later), without other plugins:
--
--     require('spile').setup { settings = { release = '6.1.0-56-amd64', guru = false } }

local M = {}

local config = {
  cmd = { 'spile', '--language-server' },
  -- What scripts are checked against: release, index, tapset, modules, guru, args.
  settings = {},
  on_attach = nil,
}
local client_id

--- The text of a library file that is part of the program.
local function read_library(buffer, uri)
  local client = client_id and vim.lsp.get_client_by_id(client_id)
  if not client then return end
  local answer = client.request_sync('spile/text', { uri = uri }, 10000, buffer)
  if not answer or answer.err then
    vim.notify('spile: ' .. uri .. ': ' .. (answer and answer.err.message or 'no answer'), vim.log.levels.ERROR)
    return
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(answer.result, '\n'))
  vim.api.nvim_buf_set_option(buffer, 'modifiable', false)
  vim.api.nvim_buf_set_option(buffer, 'buftype', 'nofile')
  vim.api.nvim_buf_set_option(buffer, 'filetype', 'systemtap')
end

--- Attaches the buffer; the server is started once.
function M.attach(buffer)
  if vim.api.nvim_buf_get_name(buffer):match('^spile:') then return end
  if not (client_id and vim.lsp.get_client_by_id(client_id)) then
    client_id = vim.lsp.start_client {
      name = 'spile',
      cmd = config.cmd,
      root_dir = vim.fn.getcwd(),
      init_options = config.settings,
      settings = { spile = config.settings },
      on_attach = config.on_attach,
      flags = { debounce_text_changes = 50 },
    }
  end
  if client_id then vim.lsp.buf_attach_client(buffer, client_id) end
  return client_id
end

function M.setup(options)
  config = vim.tbl_deep_extend('force', config, options or {})
  local group = vim.api.nvim_create_augroup('spile', {})
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = 'systemtap',
    callback = function(event) M.attach(event.buf) end,
  })
  vim.api.nvim_create_autocmd('BufReadCmd', {
    group = group,
    pattern = 'spile:/*',
    callback = function(event) read_library(event.buf, event.match:match('spile:.*') or event.match) end,
  })
  -- Scripts that are open already.
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_option(buffer, 'filetype') == 'systemtap' then
      M.attach(buffer)
    end
  end
end

return M
