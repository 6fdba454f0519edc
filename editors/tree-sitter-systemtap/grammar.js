// SPDX-License-Identifier: GPL-2.0-or-later
// SystemTap scripts. What a preprocessor conditional or a macro stands for is not known before it is expanded, so what they have
// inside is a list of tokens.

const PREC = { assign: 1, ternary: 2, or: 3, and: 4, in: 5, bitor: 6, xor: 7, bitand: 8, compare: 9, match: 10, shift: 11, concat: 12, add: 13, multiply: 14, unary: 15, postfix: 16 };

const list = (rule) => seq(rule, repeat(seq(',', rule)));

module.exports = grammar({
  name: 'systemtap',
  word: ($) => $.identifier,
  extras: ($) => [/\s/, $.comment],
  conflicts: ($) => [],
  rules: {
    source_file: ($) => repeat($._item),

    _item: ($) => choice($.probe_definition, $.function_definition, $.global_declaration, $.macro_definition, $.embedded_c, $.conditional, $.macro_call, ';'),

    // Top level.
    probe_definition: ($) => seq(
      'probe',
      repeat(prec(1, seq(field('alias', $.probe_point), choice('=', '+=')))),
      list($.probe_point),
      field('body', $.block),
      optional(seq(',', field('epilogue', $.block))),
    ),
    probe_point: ($) => seq(
      $._part,
      repeat(seq('.', $._part)),
      optional(field('optional', choice('?', '!'))),
      optional(seq('if', '(', field('condition', $._expression), ')')),
    ),
    _part: ($) => choice($.component, $.group),
    group: ($) => seq('{', list($.probe_point), '}'),
    component: ($) => seq(
      field('name', choice(alias($._component_name, $.component_name), $.wildcard, $.macro_call)),
      optional(seq('(', field('argument', choice($.number, seq(optional('-'), $.number), $.string, $.argument, $.macro_call)), ')')),
    ),
    _component_name: ($) => choice($.identifier, 'function', 'return', 'private', 'global', 'probe', 'string', 'long', 'next', 'delete', 'limit'),
    wildcard: (_) => /[A-Za-z0-9_]*\*[A-Za-z0-9_*]*/,

    function_definition: ($) => seq(
      optional('private'), 'function', field('name', $.identifier),
      optional(seq(':', $.type)),
      '(', optional(list($.parameter)), ')',
      optional(seq(':', choice($.type, field('priority', $.number)))),
      field('body', choice($.block, $.embedded_c)),
    ),
    parameter: ($) => seq(field('name', $.identifier), optional(seq(':', $.type))),
    type: (_) => choice('string', 'long'),

    global_declaration: ($) => prec.right(seq(choice(seq(optional('private'), 'global'), 'private'), list($.global_variable), optional(';'))),
    global_variable: ($) => seq(
      field('name', $.identifier),
      optional('%'),
      optional(seq('[', field('size', choice($.number, $.argument, $.macro_call)), ']')),
      optional('%'),
      optional(seq('=', field('value', choice($.string, $.argument, seq(optional('-'), $.number))))),
    ),

    macro_definition: ($) => seq(
      '@define', field('name', choice($.identifier, alias(choice('string', 'long', 'limit', 'next'), $.identifier))),
      optional(seq('(', optional(list($.identifier)), ')')),
      '%(', field('body', alias(repeat($._token), $.macro_body)), '%)',
    ),

    embedded_c: (_) => seq('%{', token(prec(-1, /([^%]|%[^}])*/)), '%}'),

    // Of a conditional it is not known what it is part of.
    conditional: ($) => seq(
      '%(', field('condition', alias(repeat1($._token), $.condition)), '%?',
      field('consequence', alias(repeat($._token), $.tokens)),
      optional(seq('%:', field('alternative', alias(repeat($._token), $.tokens)))),
      '%)',
    ),
    // Keywords are names here.
    _token: ($) => choice(
      $.identifier, $.number, $._string_part, $.target, $.argument, $.at_word, $.conditional, $.embedded_c, '@define', $._punctuation,
    ),
    _punctuation: (_) => token(prec(-1, /[-+*\/<>=!~&|^.,:;?$%\[\](){}]/)),

    // Statements.
    block: ($) => seq('{', repeat($._statement), '}'),
    _statement: ($) => choice(
      $.block, $.if_statement, $.while_statement, $.for_statement, $.foreach_statement, $.jump_statement, $.return_statement,
      $.delete_statement, $.try_statement, $.expression_statement, $.empty_statement,
    ),
    empty_statement: (_) => ';',
    expression_statement: ($) => prec.right(seq($._expression, optional(';'))),
    if_statement: ($) => prec.right(seq('if', '(', field('condition', $._expression), ')', $._statement, optional(seq('else', $._statement)))),
    while_statement: ($) => seq('while', '(', field('condition', $._expression), ')', $._statement),
    for_statement: ($) => seq('for', '(', optional($._expression), ';', optional($._expression), ';', optional($._expression), ')', $._statement),
    foreach_statement: ($) => seq(
      'foreach', '(',
      optional(seq(field('value', $._loop_variable), '=')),
      field('key', choice($._loop_variable, seq('[', list($._loop_variable), ']'))),
      'in', field('array', $._loop_array), optional($.sort),
      optional(seq('limit', field('limit', $._expression))),
      ')', $._statement,
    ),
    _loop_variable: ($) => seq($.identifier, optional($.sort)),
    _loop_array: ($) => choice($.identifier, $.slice, $.macro_call),
    slice: ($) => seq($.identifier, '[', list($._index), ']'),
    sort: ($) => seq(optional($.at_word), choice('+', '-')),
    jump_statement: (_) => prec.right(seq(choice('break', 'continue', 'next'), optional(';'))),
    return_statement: ($) => prec.right(seq('return', optional($._expression), optional(';'))),
    delete_statement: ($) => prec.right(seq('delete', $._expression, optional(';'))),
    try_statement: ($) => seq('try', $.block, 'catch', optional(seq('(', field('message', $.identifier), ')')), $.block),

    // Expressions.
    _expression: ($) => choice(
      $.identifier, $.number, $.string, $.target, $.argument, $.macro_call, $.conditional, $.embedded_c, $.call, $.subscript, $.member,
      $.pretty, $.unary, $.update, $.binary, $.ternary, $.assignment, $.membership, $.parenthesized,
    ),
    parenthesized: ($) => seq('(', $._expression, ')'),
    call: ($) => prec(PREC.postfix, seq(field('function', $.identifier), '(', optional(list($._expression)), ')')),
    macro_call: ($) => prec.right(seq(field('name', $.at_word), optional(seq('(', optional(list(choice($._expression, $._type_argument))), ')')))),
    _type_argument: ($) => $.type,
    subscript: ($) => prec(PREC.postfix, seq($._expression, '[', list($._index), ']')),
    _index: ($) => choice($._expression, alias('*', $.any)),
    member: ($) => prec(PREC.postfix, seq($._expression, '->', field('name', choice($.member_name, $.macro_call, $.conditional)))),
    member_name: ($) => choice($.identifier, $.type, 'function', 'probe', 'global', 'private', 'next', 'limit', 'in', 'delete', 'return', 'try', 'catch'),
    pretty: ($) => prec(PREC.postfix, seq($._expression, token.immediate(/\$\$?/))),
    unary: ($) => prec(PREC.unary, seq(choice('+', '-', '!', '~', '&'), $._expression)),
    update: ($) => choice(
      prec(PREC.unary, seq(choice('++', '--'), $._expression)),
      prec(PREC.postfix, seq($._expression, choice('++', '--'))),
    ),
    binary: ($) => choice(...[
      ['||', PREC.or], ['&&', PREC.and], ['|', PREC.bitor], ['^', PREC.xor], ['&', PREC.bitand],
      ['<', PREC.compare], ['>', PREC.compare], ['<=', PREC.compare], ['>=', PREC.compare], ['==', PREC.compare], ['!=', PREC.compare],
      ['=~', PREC.match], ['!~', PREC.match], ['<<', PREC.shift], ['>>', PREC.shift], ['>>>', PREC.shift], ['.', PREC.concat],
      ['+', PREC.add], ['-', PREC.add], ['*', PREC.multiply], ['/', PREC.multiply], ['%', PREC.multiply],
    ].map(([operator, precedence]) => prec.left(precedence, seq($._expression, field('operator', operator), $._expression)))),
    ternary: ($) => prec.right(PREC.ternary, seq($._expression, '?', $._expression, ':', $._expression)),
    assignment: ($) => prec.right(PREC.assign, seq(
      $._expression,
      field('operator', choice('=', '<<<', '+=', '-=', '*=', '/=', '%=', '&=', '^=', '|=', '<<=', '>>=', '.=')),
      $._expression,
    )),
    membership: ($) => prec.left(PREC.in, seq(choice($._expression, $.keys), 'in', $._expression)),
    keys: ($) => seq('[', list($._index), ']'),

    // Words.
    identifier: (_) => /[A-Za-z_][A-Za-z0-9_]*/,
    target: (_) => /\$\$?[A-Za-z_][A-Za-z0-9_]*/,
    argument: (_) => /[$@]([0-9]+|#)/,
    at_word: (_) => /@[A-Za-z_][A-Za-z0-9_]*/,
    number: (_) => /0[xX][0-9A-Fa-f]+|[0-9]+/,
    string: ($) => prec.right(repeat1($._string_part)),
    _string_part: ($) => seq('"', repeat(choice($.escape, token.immediate(prec(1, /[^"\\\n]+/)))), token.immediate('"')),
    escape: (_) => token.immediate(/\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.|\n)/),
    comment: (_) => token(choice(/#[^\n]*/, /\/\/[^\n]*/, /\/\*[^*]*\*+([^/*][^*]*\*+)*\//)),
  },
});
