" SPDX-License-Identifier: GPL-2.0-or-later
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1
setlocal comments=s1:/*,mb:*,ex:*/,://,:# commentstring=#\ %s
setlocal shiftwidth=2 expandtab formatoptions-=t formatoptions+=croql
" $name and @name are words.
setlocal iskeyword+=$,@-@
let b:undo_ftplugin = 'setlocal comments< commentstring< shiftwidth< expandtab< formatoptions< iskeyword<'
