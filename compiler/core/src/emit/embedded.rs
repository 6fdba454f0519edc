// SPDX-License-Identifier: GPL-2.0-or-later

//! The unit with the script's embedded C: kernel headers, and a plain function for each function and expression.

use super::text;
use crate::plan::{EmbeddedExpression, EmbeddedFunction, Plan, SourceText};
use crate::plan::{Global, Storage};
use crate::program::{Contents, Type};

/// C text of the unit with all embedded C of the script: `embedded.c`.
pub(super) fn emit(plan: &Plan) -> String {
    let mut unit = String::new();
    unit.push_str(&format!("/* Embedded C of {}. */\n", text::comment(&plan.info.title)));
    unit.push_str(&format!("#define MAXSTRINGLEN {}\n#include \"embedded.h\"\n\n", plan.info.limits.string_bytes));
    for (name, value) in &plan.info.defines {
        unit.push_str(&format!("#define {name} {value}\n"));
    }
    for prototype in prototypes(plan) {
        unit.push_str(&format!("{prototype};\n"));
    }
    for global in plan.globals.iter().filter(|global| plan.embedded.globals.contains(&global.id)) {
        emit_global(&mut unit, global);
    }
    for declaration in &plan.embedded.declarations {
        unit.push('\n');
        located(&mut unit, declaration);
    }
    for function in &plan.embedded.functions {
        emit_function(&mut unit, function);
    }
    for expression in &plan.embedded.expressions {
        unit.push('\n');
        for (name, _) in &expression.parameters {
            unit.push_str(&format!("#define STAP_ARG_{name} spile_arg_{name}\n"));
        }
        unit.push_str(&format!("{}\n{{\n", expression_prototype(expression)));
        match expression.ty {
            None => unit.push_str(&format!("\t{};\n}}\n", expression.code.text)),
            Some(Type::Long) => {
                unit.push_str(&format!("\t*spile_result = (spile_long)({{ {}; }});\n}}\n", expression.code.text));
            }
            Some(Type::String) => unit.push_str(&format!(
                "\tconst char *spile_text = ({{ {}; }});\n\n\tstrscpy(spile_result, spile_text, MAXSTRINGLEN);\n}}\n",
                expression.code.text
            )),
        }
        for (name, _) in &expression.parameters {
            unit.push_str(&format!("#undef STAP_ARG_{name}\n"));
        }
    }
    unit
}

/// Prototypes of everything that the script's unit calls here.
pub(super) fn prototypes(plan: &Plan) -> Vec<String> {
    let functions = plan.embedded.functions.iter().map(prototype);
    functions.chain(plan.embedded.expressions.iter().map(expression_prototype)).collect()
}

fn prototype(function: &EmbeddedFunction) -> String {
    prototype_of(&function.symbol, &function.parameters, function.returns)
}

fn expression_prototype(expression: &EmbeddedExpression) -> String {
    prototype_of(&expression.symbol, &expression.parameters, expression.ty)
}

fn prototype_of(symbol: &str, arguments: &[(String, Type)], returns: Option<Type>) -> String {
    let mut parameters = vec!["struct spile_context *CONTEXT".to_string()];
    for (name, ty) in arguments {
        parameters.push(match ty {
            Type::Long => format!("spile_long spile_arg_{name}"),
            Type::String => format!("char *spile_arg_{name}"),
        });
    }
    match returns {
        None => {}
        Some(Type::Long) => parameters.push("spile_long *spile_result".into()),
        Some(Type::String) => parameters.push("char *spile_result".into()),
    }
    format!("void {symbol}({})", parameters.join(", "))
}

/// How embedded C accesses a global: `STAP_GLOBAL_GET_v(keys)` and `STAP_GLOBAL_SET_v(keys, value)`.
fn emit_global(unit: &mut String, global: &Global) {
    let (symbol, name) = (&global.symbol, &global.name);
    match &global.storage {
        Storage::Variable { ty: Type::Long, .. } => unit.push_str(&format!(
            "extern spile_long {symbol};\n\
             #define STAP_GLOBAL_GET_{name}() ({symbol})\n\
             #define STAP_GLOBAL_SET_{name}(value) ({symbol} = (value))\n"
        )),
        Storage::Variable { ty: Type::String, .. } => unit.push_str(&format!(
            "extern struct spile_embedded_text {symbol};\n\
             #define STAP_GLOBAL_GET_{name}() ((char *){symbol}.text)\n\
             #define STAP_GLOBAL_SET_{name}(value) spile_embedded_set(&{symbol}, value)\n"
        )),
        Storage::Map(map) => {
            let parameters: Vec<String> = (0..map.keys.len()).map(|key| format!("key{key}")).collect();
            let keys: Vec<String> = map
                .keys
                .iter()
                .zip(&parameters)
                .map(|(ty, key)| match ty {
                    Type::Long => format!("{{ .number = ({key}) }}"),
                    Type::String => format!("{{ .text = spile_embedded_string({key}) }}"),
                })
                .collect();
            let what = match keys.is_empty() {
                true => format!("CONTEXT, &{symbol}, NULL"),
                false => format!("CONTEXT, &{symbol}, (const union spile_key[]){{ {} }}", keys.join(", ")),
            };
            let listed = parameters.join(", ");
            let with_value: Vec<String> = parameters.iter().cloned().chain(["value".to_string()]).collect();
            let with_value = with_value.join(", ");
            unit.push_str(&format!("extern const struct spile_map {symbol};\n"));
            unit.push_str(&match map.contents {
                Contents::Value(Type::Long) => format!(
                    "#define STAP_GLOBAL_GET_{name}({listed}) spile_map_long({what})\n\
                     #define STAP_GLOBAL_SET_{name}({with_value}) spile_map_set_long({what}, value)\n"
                ),
                Contents::Value(Type::String) => format!(
                    "#define STAP_GLOBAL_GET_{name}({listed}) ((char *)spile_map_text({what}).text)\n\
                     #define STAP_GLOBAL_SET_{name}({with_value}) spile_map_set_text({what}, spile_embedded_string(value))\n"
                ),
                Contents::Stats(_) if keys.is_empty() => {
                    format!("#define STAP_GLOBAL_SET_{name}({with_value}) spile_stats_feed(CONTEXT, &{symbol}, value)\n")
                }
                Contents::Stats(_) => format!(
                    "#define STAP_GLOBAL_SET_{name}({with_value}) spile_stats_add({what}, value)\n"
                ),
            });
        }
    }
}

/// Arguments and result as members of `THIS`, for code older than the STAP_ macros, which it may use too; and for code that
/// reads registers or reports errors through CONTEXT.
fn emit_unmangled(unit: &mut String, function: &EmbeddedFunction) {
    let member = |ty: Type| if ty == Type::Long { "spile_long " } else { "char *" };
    let symbol = &function.symbol;
    unit.push_str(&format!("\nstruct {symbol}_this {{\n"));
    for (name, ty) in &function.parameters {
        unit.push_str(&format!("\t{}{name};\n", member(*ty)));
    }
    if let Some(ty) = function.returns {
        unit.push_str(&format!("\t{}__retvalue;\n", member(ty)));
    }
    unit.push_str("};\n");
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &function.parameters {
        unit.push_str(&format!("#define STAP_ARG_{name} THIS->{name}\n"));
        names.push(format!("STAP_ARG_{name}"));
    }
    define_result(unit, function.returns, "THIS->__retvalue", "THIS->__retvalue", &mut names);
    unit.push_str(&format!(
        "static void {symbol}_text(struct spile_context *CONTEXT, struct {symbol}_this *THIS)\n{{\n"
    ));
    located(unit, &function.code);
    unit.push_str("}\n");
    for name in names {
        unit.push_str(&format!("#undef {name}\n"));
    }
    unit.push_str(&format!("{}\n{{\n\tstruct {symbol}_this spile_this = {{\n", prototype(function)));
    for (name, _) in &function.parameters {
        unit.push_str(&format!("\t\t.{name} = spile_arg_{name},\n"));
    }
    if function.returns == Some(Type::String) {
        unit.push_str("\t\t.__retvalue = spile_result,\n");
    }
    unit.push_str("\t};\n\n");
    if CONTEXT_REGISTERS.iter().any(|member| has_word(&function.code.text, member)) {
        unit.push_str("\tspile_embedded_registers(CONTEXT);\n");
    }
    unit.push_str(&format!(
        "\tCONTEXT->last_error = NULL;\n\t{symbol}_text(CONTEXT, &spile_this);\n\
         \tif (CONTEXT->last_error)\n\t\tspile_embedded_error(CONTEXT, \"%s\", CONTEXT->last_error);\n"
    ));
    if function.returns == Some(Type::Long) {
        unit.push_str("\t*spile_result = spile_this.__retvalue;\n");
    }
    unit.push_str("}\n");
}

/// Defines STAP_RETVALUE and STAP_RETURN: `long` is the place of a number, `text` the address of a string.
fn define_result(unit: &mut String, returns: Option<Type>, long: &str, text: &str, names: &mut Vec<String>) {
    match returns {
        None => return,
        Some(Type::Long) => {
            unit.push_str(&format!("#define STAP_RETVALUE {long}\n"));
            unit.push_str("#define STAP_RETURN(value) do { STAP_RETVALUE = (value); return; } while (0)\n");
        }
        Some(Type::String) => {
            unit.push_str(&format!("#define STAP_RETVALUE (*(string_t *){text})\n"));
            unit.push_str(&format!(
                "#define STAP_RETURN(value) do {{ strscpy({text}, (value), MAXSTRINGLEN); return; }} while (0)\n"
            ));
        }
    }
    names.extend(["STAP_RETVALUE".to_string(), "STAP_RETURN".to_string()]);
}

/// Members of CONTEXT that are set for functions that name them.
const CONTEXT_REGISTERS: [&str; 4] = ["kregs", "uregs", "user_mode_p", "probe_point"];

/// Whether a C text contains the name.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|found| found == word)
}

fn emit_function(unit: &mut String, function: &EmbeddedFunction) {
    let of_the_context = ["THIS", "last_error"].iter().chain(&CONTEXT_REGISTERS);
    if function.unmangled || of_the_context.into_iter().any(|word| has_word(&function.code.text, word)) {
        return emit_unmangled(unit, function);
    }
    let mut names: Vec<String> = Vec::new();
    unit.push('\n');
    for (name, _) in &function.parameters {
        unit.push_str(&format!("#define STAP_ARG_{name} spile_arg_{name}\n"));
        names.push(format!("STAP_ARG_{name}"));
    }
    define_result(unit, function.returns, "(*spile_result)", "spile_result", &mut names);
    unit.push_str(&format!("{}\n{{\n", prototype(function)));
    located(unit, &function.code);
    unit.push_str("}\n");
    for name in names {
        unit.push_str(&format!("#undef {name}\n"));
    }
}

/// C text with a `#line`, so that the C compiler's messages name the script.
fn located(unit: &mut String, code: &SourceText) {
    unit.push_str(&format!("#line {} {}\n{}\n", code.line, text::literal(code.file.as_bytes()), code.text));
}
