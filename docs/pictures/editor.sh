# The text of docs/editor.svg: a screen of Neovim with the language server, in tmux.
. "$ROOT/docs/pictures/screen.sh"
cat >"$directory/opens.stp" <<'END'
global opens
probe kernel.function("vfs_open") {
  opens[execname()]++
  prntln($path->dentry->d_name->name)
}

probe timer.s(5) {
  foreach (name in opens- limit 3)
    printf("%s %d\n", name, opens[name])
  exit()
}
END
cat >"$directory/init.lua" <<'END'
vim.opt.runtimepath:prepend(vim.env.ROOT .. "/editors/vim")
vim.opt.laststatus = 0
vim.opt.signcolumn = "yes"
vim.diagnostic.config({ virtual_text = true, signs = true })
vim.api.nvim_create_autocmd("VimEnter", { callback = function()
  local server = { name = "spile", cmd = { "spile", "--language-server" }, root_dir = vim.loop.cwd() }
  vim.lsp.buf_attach_client(0, vim.lsp.start_client(server))
end })
END
open_screen 100 14 "ROOT=$ROOT TERM=xterm nvim -u $directory/init.lua $directory/opens.stp"
wait_for 60 'unresolved'
keys 4G 0fdll
keys -l ':lua vim.lsp.buf.hover()'
keys Enter
wait_for 60 'bytes of'
cat "$directory/screen"
close_screen
