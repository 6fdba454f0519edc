//! The unit with a script's own C: kernel headers, and a plain function for each function and expression.

use super::text;
use crate::plan::{EmbeddedFunction, Located, Plan};
use crate::program::Type;

pub(super) fn emit(plan: &Plan) -> String {
    let mut unit = String::new();
    unit.push_str(&format!("/* Embedded C of {}. */\n", text::comment(&plan.naming.title)));
    unit.push_str(&format!("#define MAXSTRINGLEN {}\n#include \"embedded.h\"\n\n", plan.naming.limits.string_bytes));
    for prototype in prototypes(plan) {
        unit.push_str(&format!("{prototype};\n"));
    }
    for declaration in &plan.embedded.declarations {
        unit.push('\n');
        located(&mut unit, declaration);
    }
    for function in &plan.embedded.functions {
        emit_function(&mut unit, function);
    }
    for expression in &plan.embedded.expressions {
        let line = format!("{}\n{{\n", expression_prototype(&expression.symbol, expression.ty));
        unit.push_str(&format!("\n{line}"));
        match expression.ty {
            Type::Long => unit.push_str(&format!("\t*spile_result = (spile_long)({});\n}}\n", expression.code.text)),
            Type::String => unit.push_str(&format!(
                "\tconst char *spile_text = ({});\n\n\tstrscpy(spile_result, spile_text, MAXSTRINGLEN);\n}}\n",
                expression.code.text
            )),
        }
    }
    unit
}

/// Prototypes of all that the script's unit calls here.
pub(super) fn prototypes(plan: &Plan) -> Vec<String> {
    let functions = plan.embedded.functions.iter().map(prototype);
    let expressions = plan.embedded.expressions.iter();
    functions.chain(expressions.map(|expression| expression_prototype(&expression.symbol, expression.ty))).collect()
}

fn prototype(function: &EmbeddedFunction) -> String {
    let mut parameters = vec!["struct spile_context *CONTEXT".to_string()];
    for (name, ty) in &function.parameters {
        parameters.push(match ty {
            Type::Long => format!("spile_long spile_arg_{name}"),
            Type::String => format!("char *spile_arg_{name}"),
        });
    }
    match function.returns {
        None => {}
        Some(Type::Long) => parameters.push("spile_long *spile_result".into()),
        Some(Type::String) => parameters.push("char *spile_result".into()),
    }
    format!("void {}({})", function.symbol, parameters.join(", "))
}

fn expression_prototype(symbol: &str, ty: Type) -> String {
    let result = match ty {
        Type::Long => "spile_long *spile_result",
        Type::String => "char *spile_result",
    };
    format!("void {symbol}(struct spile_context *CONTEXT, {result})")
}

fn emit_function(unit: &mut String, function: &EmbeddedFunction) {
    let mut names: Vec<String> = Vec::new();
    unit.push('\n');
    for (name, _) in &function.parameters {
        unit.push_str(&format!("#define STAP_ARG_{name} spile_arg_{name}\n"));
        names.push(format!("STAP_ARG_{name}"));
    }
    match function.returns {
        None => {}
        Some(Type::Long) => {
            unit.push_str("#define STAP_RETVALUE (*spile_result)\n");
            unit.push_str("#define STAP_RETURN(value) do { STAP_RETVALUE = (value); return; } while (0)\n");
        }
        Some(Type::String) => {
            unit.push_str("#define STAP_RETVALUE (*(string_t *)spile_result)\n");
            unit.push_str(
                "#define STAP_RETURN(value) do { strscpy(spile_result, (value), MAXSTRINGLEN); return; } while (0)\n",
            );
        }
    }
    if function.returns.is_some() {
        names.extend(["STAP_RETVALUE".to_string(), "STAP_RETURN".to_string()]);
    }
    unit.push_str(&format!("{}\n{{\n", prototype(function)));
    located(unit, &function.code);
    unit.push_str("}\n");
    for name in names {
        unit.push_str(&format!("#undef {name}\n"));
    }
}

/// C text that the C compiler's messages place in the script.
fn located(unit: &mut String, code: &Located) {
    unit.push_str(&format!("#line {} {}\n{}\n", code.line, text::literal(code.file.as_bytes()), code.text));
}
