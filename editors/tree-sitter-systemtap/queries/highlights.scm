; SPDX-License-Identifier: GPL-2.0-or-later
["probe" "function" "global" "private"] @keyword
"@define" @keyword.directive
["if" "else"] @conditional
["for" "foreach" "while" "in" "limit"] @repeat
["break" "continue" "next" "return"] @keyword.return
"delete" @keyword
["try" "catch"] @exception
(type) @type
(comment) @comment
(string) @string
(escape) @string.escape
(number) @number
(identifier) @variable
(target) @variable.builtin
(argument) @constant.macro
(at_word) @function.macro
(component_name) @label
(wildcard) @label
(member_name) @property
(parameter name: (identifier) @parameter)
(call function: (identifier) @function)
(function_definition name: (identifier) @function)
(macro_definition name: (identifier) @function.macro)
["%(" "%?" "%:" "%)"] @keyword.directive
["%{" "%}"] @punctuation.special
["=" "<<<" "+=" "-=" "*=" "/=" "%=" "&=" "^=" "|=" "<<=" ">>=" ".=" "||" "&&" "|" "^" "&" "<" ">" "<=" ">=" "==" "!=" "=~" "!~" "<<" ">>" ">>>" "." "+" "-" "*" "/" "%" "!" "~" "++" "--" "->" "?" ":"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";"] @punctuation.delimiter
