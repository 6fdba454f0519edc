# The text of docs/editor.svg: a screen of Neovim with the language server, in tmux.
directory=$(mktemp -d)
export TMUX_TMPDIR="$directory"
unset TMUX
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
tmux -f /dev/null -L picture new-session -d -x 100 -y 14 "ROOT=$ROOT TERM=xterm nvim -u $directory/init.lua $directory/opens.stp"
for second in $(seq 60); do
	sleep 1
	tmux -L picture capture-pane -p >"$directory/screen"
	grep -q 'unresolved' "$directory/screen" && break
done
tmux -L picture send-keys 4G 0fdll
tmux -L picture send-keys -l ':lua vim.lsp.buf.hover()'
tmux -L picture send-keys Enter
for second in $(seq 60); do
	sleep 1
	tmux -L picture capture-pane -p >"$directory/screen"
	grep -q 'bytes of' "$directory/screen" && break
done
cat "$directory/screen"
tmux -L picture kill-server
rm -r "$directory"
