" SPDX-License-Identifier: GPL-2.0-or-later
" Syntax of SystemTap scripts, as spile reads them. A test highlights all examples.
if exists('b:current_syntax')
  finish
endif
let s:save = &cpoptions
set cpoptions&vim
syntax case match
syntax sync minlines=200
syntax iskeyword @,48-57,_

syntax match stapNumber /\<\d\+\>/
syntax match stapNumber /\<0[xX]\x\+\>/
syntax match stapFunction /\<\h\w*\ze\s*(/
" No keywords of vim's: those would come before members of the same name. They come after functions, because of `if (`.
for s:words in [
      \ ['stapDeclaration', 'function global private'],
      \ ['stapConditional', 'if else'],
      \ ['stapRepeat', 'for foreach while in limit'],
      \ ['stapStatement', 'break continue next return delete'],
      \ ['stapException', 'try catch'],
      \ ['stapType', 'string long'],
      \ ['stapPrint', 'print println printf printd printdln print_char sprint sprintln sprintf sprintd sprintdln'],
      \ ]
  execute 'syntax match' s:words[0] '/\(->\s*\)\@<!\<\(' . substitute(s:words[1], ' ', '\\|', 'g') . '\)\>/'
endfor
unlet s:words
syntax match stapFunctionName /\(\<function\s\+\)\@<=\h\w*/
syntax match stapMember /->\s*\zs\h\w*/
syntax match stapTarget /\$\{1,2}\h\w*/
syntax match stapPretty /\(\w\|[])]\)\@<=\$\{1,2}\(\w\)\@!/
syntax match stapArgument /[$@]\(\d\+\|#\)/
syntax match stapMacro /@\h\w*/
syntax match stapOperatorWord /@\(cast\|defined\|entry\|var\|perf\|const\|enum\|enumname\|probewrite\|kregister\|uregister\|kderef\|uderef\)\>/
syntax match stapExtractor /@\(hist_log\|hist_linear\|count\|sum\|min\|max\|avg\|variance\)\>/
syntax match stapDefine /@define\>/
syntax match stapMacroName /\(@define\s\+\)\@<=\h\w*/
syntax match stapConditionalCompilation /%(\|%?\|%:\|%)/
syntax match stapAggregate /<<</

" The points of a probe, up to its body.
" `probe` is no keyword of its own: those come before regions.
syntax region stapPoints matchgroup=stapDeclaration start=/\<probe\>/ matchgroup=NONE end=/\ze\(\.\s*\)\@<!{/ end=/\ze\<\(probe\|function\|global\|private\)\>\s/
      \ contains=stapComponent,stapGroup,stapString,stapNumber,stapComment,stapCondition,stapArgument,stapMacro,stapConditionalCompilation
syntax match stapComponent /\(\h\|\*\)[[:alnum:]_*]*/ contained
syntax region stapGroup start=/\.\s*\zs{/ end=/}/ contained contains=stapComponent,stapGroup,stapString,stapComment
syntax region stapCondition matchgroup=stapConditional start=/\<if\>\s*(/ end=/)/ contained contains=stapParen,stapString,stapNumber,stapTarget,stapMember,stapFunction,stapMacro,stapOperatorWord,stapComment
syntax region stapParen start=/(/ end=/)/ contained contains=stapParen,stapString,stapNumber,stapTarget,stapMember,stapFunction,stapMacro,stapOperatorWord,stapComment

syntax match stapEscape /\\\([abefnrtv\\"]\|x\x\{1,2}\|\o\{1,3}\)/ contained
syntax match stapFormat /%[-+ #0]*\(\d\+\|\*\)\=\(\.\(\d\+\|\*\)\)\=\(ll\|l\)\=[bcdimMnopsuxX%]/ contained
syntax region stapString start=/"/ skip=/\\./ end=/"/ oneline contains=stapEscape,stapFormat

syntax keyword stapTodo TODO FIXME XXX contained
syntax match stapComment /#.*$/ contains=stapTodo,@Spell
syntax match stapComment +//.*$+ contains=stapTodo,@Spell
syntax region stapComment start=+/\*+ end=+\*/+ contains=stapTodo,@Spell
" $# and @# begin no comment.
syntax match stapArgument /[$@]#/

syntax include @stapC syntax/c.vim
unlet! b:current_syntax
syntax region stapEmbeddedC matchgroup=stapBrackets start=/%{/ end=/%}/ keepend contains=@stapC

highlight default link stapDeclaration Keyword
highlight default link stapConditional Conditional
highlight default link stapRepeat Repeat
highlight default link stapStatement Statement
highlight default link stapException Exception
highlight default link stapType Type
highlight default link stapPrint Function
highlight default link stapFunction Function
highlight default link stapFunctionName Function
highlight default link stapNumber Number
highlight default link stapString String
highlight default link stapEscape SpecialChar
highlight default link stapFormat SpecialChar
highlight default link stapComment Comment
highlight default link stapTodo Todo
highlight default link stapTarget Identifier
highlight default link stapPretty Special
highlight default link stapArgument Special
highlight default link stapMember Identifier
highlight default link stapMacro Macro
highlight default link stapMacroName Macro
highlight default link stapDefine Define
highlight default link stapOperatorWord Operator
highlight default link stapExtractor Operator
highlight default link stapAggregate Operator
highlight default link stapConditionalCompilation PreCondit
highlight default link stapComponent Label
highlight default link stapBrackets PreProc

let b:current_syntax = 'systemtap'
let &cpoptions = s:save
unlet s:save
