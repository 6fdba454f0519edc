-- SPDX-License-Identifier: GPL-2.0-or-later
-- Run by neovim.host.sh in Neovim, with a script open.

local root = os.getenv('ROOT')
local patience = 60000

local function say(text) io.stdout:write(text, '\n') end

local function finish(status)
  io.stdout:flush()
  vim.cmd('cquit ' .. status)
end

local function main()
  vim.cmd('filetype plugin on')
  vim.cmd('syntax on')
  require('spile').setup {
    cmd = { os.getenv('SPILE'), '--language-server' },
    settings = { release = os.getenv('RELEASE') },
  }
  vim.cmd('edit script.stp')
  assert(vim.bo.filetype == 'systemtap', 'the type is ' .. vim.bo.filetype)
  local buffer = vim.api.nvim_get_current_buf()
  assert(vim.wait(patience, function() return #vim.diagnostic.get(buffer) > 0 end, 20), 'no diagnostic')
  say('diagnostic: ' .. vim.diagnostic.get(buffer)[1].message)

  local function ask(method, params)
    local answers, problem = vim.lsp.buf_request_sync(buffer, method, params, patience)
    assert(answers, problem)
    for _, answer in pairs(answers) do
      assert(not answer.err, vim.inspect(answer.err))
      return answer.result
    end
  end
  local function at(line, column, more)
    local params = { textDocument = vim.lsp.util.make_text_document_params(buffer), position = { line = line, character = column } }
    return vim.tbl_extend('force', params, more or {})
  end
  local function line_of(number) return vim.api.nvim_buf_get_lines(buffer, number, number + 1, false)[1] end

  -- The fix.
  local column = line_of(5):find('prntln', 1, true)
  local place = { line = 5, character = column }
  local fixes = ask('textDocument/codeAction', at(5, column, { range = { start = place, ['end'] = place }, context = { diagnostics = {} } }))
  vim.lsp.util.apply_workspace_edit(fixes[1].edit, 'utf-16')
  assert(vim.wait(patience, function() return #vim.diagnostic.get(buffer) == 0 end, 20), 'still wrong')
  say('fixed by ' .. line_of(5):match('%) (%a+)%('))

  -- Completion of a line that is being typed, by Neovim's own function.
  vim.api.nvim_buf_set_lines(buffer, 6, 6, false, { 'probe kernel.function("vfs_rea' })
  for _, item in ipairs(ask('textDocument/completion', at(6, #line_of(6))).items) do
    if item.label == 'vfs_read' then say('completes ' .. item.label) end
  end
  vim.api.nvim_buf_set_lines(buffer, 6, 7, false, {})

  local hover = ask('textDocument/hover', at(3, line_of(3):find('$file', 1, true) + 1))
  say('hover: ' .. hover.contents.value:match('```c\n([^\n]*)'))

  local edit = ask('textDocument/rename', at(0, 8, { newName = 'counts' }))
  vim.lsp.util.apply_workspace_edit(edit, 'utf-16')
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
  say('renamed: ' .. select(2, text:gsub('counts', '')))

  -- A library file that is part of the program.
  local places = ask('textDocument/definition', at(3, line_of(3):find('task_pid', 1, true) + 1))
  vim.cmd('edit ' .. vim.fn.fnameescape(places[1].uri or places[1].targetUri))
  for _, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    if line:match('^function task_pid') then say('library: ' .. line) break end
  end

  -- Vim's syntax of every example, compared with what the server knows.
  local groups = {
    keyword = { Keyword = true, Conditional = true, Repeat = true, Statement = true, Exception = true, Type = true, Define = true },
    string = { String = true, SpecialChar = true },
    number = { Number = true },
    comment = { Comment = true, Todo = true },
    macro = { Macro = true, Special = true, PreCondit = true },
    event = { Label = true, String = true },
    property = { Identifier = true, Macro = true },
    ['function'] = { Function = true },
  }
  local count, wrong = 0, 0
  local client = vim.lsp.get_active_clients()[1]
  local legend = client.server_capabilities.semanticTokensProvider.legend.tokenTypes
  local files = vim.fn.glob(root .. '/examples/**/*.stp', true, true)
  vim.list_extend(files, vim.fn.glob(root .. '/docs/reference/examples/*.stp', true, true))
  for _, file in ipairs(files) do
    vim.cmd('edit ' .. vim.fn.fnameescape(file))
    buffer = vim.api.nvim_get_current_buf()
    vim.cmd('syntax sync fromstart')
    local data = ask('textDocument/semanticTokens/full', { textDocument = vim.lsp.util.make_text_document_params(buffer) }).data
    local line, start = 0, 0
    for index = 1, #data, 5 do
      if data[index] > 0 then start = 0 end
      line, start = line + data[index], start + data[index + 1]
      local wanted = groups[legend[data[index + 3] + 1]]
      if wanted then
        local found = vim.fn.synIDattr(vim.fn.synIDtrans(vim.fn.synID(line + 1, start + 1, 1)), 'name')
        count = count + 1
        -- The names behind links of the default colours.
        local raw = vim.fn.synIDattr(vim.fn.synID(line + 1, start + 1, 1), 'name')
        local link = raw ~= '' and vim.fn.execute('highlight ' .. raw):match('links to (%w+)') or found
        if not (wanted[found] or wanted[link]) then
          wrong = wrong + 1
          if wrong < 20 then
            say(('wrong: %s:%d:%d: %s is %s'):format(file, line + 1, start + 1, legend[data[index + 3] + 1], raw))
          end
        end
      end
    end
  end
  say('tokens: ' .. count)

  -- The tree-sitter grammar.
  vim.treesitter.require_language('systemtap', vim.fn.getcwd() .. '/parser/systemtap.so')
  local function parse(source)
    return vim.treesitter.get_string_parser(source, 'systemtap'):parse()[1]:root()
  end
  local function plain(tree) return (tree:gsub('[%w_]+: ', ''):gsub('%s+', ' '):gsub(' %)', ')')) end
  -- Cases of a corpus file: title, source, tree.
  local function cases(file)
    local found, case, part = {}, nil, nil
    local lines = vim.fn.readfile(file)
    for index, line in ipairs(lines) do
      if line:match('^=+$') then
        if part ~= 'title' then
          case = { title = lines[index + 1], source = {}, tree = {} }
          table.insert(found, case)
          part = 'title'
        else
          part = 'source'
        end
      elseif line:match('^%-%-%-+$') then
        part = 'tree'
      elseif case and part ~= 'title' then
        table.insert(case[part], line)
      end
    end
    return found
  end
  local corpus = 0
  for _, file in ipairs(vim.fn.glob(root .. '/editors/tree-sitter-systemtap/test/corpus/*.txt', true, true)) do
    for _, case in ipairs(cases(file)) do
      local found = plain(parse(table.concat(case.source, '\n') .. '\n'):sexpr())
      if found == plain(vim.trim(table.concat(case.tree, '\n'))) then
        corpus = corpus + 1
      else
        say('wrong: ' .. case.title .. ': ' .. found)
      end
    end
  end
  say('corpus: ' .. corpus)
  local query = table.concat(vim.fn.readfile(root .. '/editors/tree-sitter-systemtap/queries/highlights.scm'), '\n')
  local highlights = vim.treesitter.parse_query('systemtap', query)
  local parsed = 0
  for _, file in ipairs(files) do
    local source = table.concat(vim.fn.readfile(file), '\n') .. '\n'
    local tree = parse(source)
    local captures = 0
    for _ in highlights:iter_captures(tree, source, 0, -1) do captures = captures + 1 end
    if tree:has_error() or captures == 0 then
      say('wrong: ' .. file .. ' does not parse')
    else
      parsed = parsed + 1
    end
  end
  say('parsed: ' .. parsed)
end

local well, problem = pcall(main)
if not well then say('wrong: ' .. tostring(problem)) end
vim.lsp.stop_client(vim.lsp.get_active_clients())
finish(well and 0 or 1)
