" SPDX-License-Identifier: GPL-2.0-or-later
" SystemTap scripts and macro files. Vim's own type for them is stp.
autocmd BufRead,BufNewFile *.stp,*.stpm set filetype=systemtap
