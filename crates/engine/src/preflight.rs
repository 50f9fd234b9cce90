//! Checks before a run starts: whether its module may be invoked, with this input, this context and the
//! available modules. A rejected run starts nothing and makes no upstream request.

use std::sync::Arc;

use module::compose::{build, dependencies};
use module::context;
use module::envelope::ErrorBody;
use module::lower::{AdmittedInput, LowerOptions, admit_input, lower};
use module::manifest::Access;
use module::{Code, Module};
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::modules::Modules;
use crate::run::{RunRequest, Warning};
use crate::tokens;

/// Checks a run; the returned input has the context that the module accepts.
pub(crate) fn check_run(
    mut execute: RunRequest,
    modules: &Modules,
    fleet: &Fleet,
) -> Result<RunRequest, Box<ErrorBody>> {
    let module = execute.module.clone();
    if !module.manifest.invocation.user_invocable {
        let message = format!("module `{}` may only be called by other modules", module.name());
        let error = ErrorBody::new(Code::E4007, message);
        return Err(Box::new(
            error.suggest("run a module that calls it, or set invocation.user_invocable"),
        ));
    }
    let AdmittedInput { mut input, unused } = admit_input(&module, std::mem::take(&mut execute.input))?;
    execute.warnings.extend(unused_warning(&unused));
    let admitted = context::admit(&module, &input)?;
    context::put(&mut input, admitted.context);
    execute.warnings.extend(context_warning(&admitted.left_out));
    let composed = !dependencies(&module).is_empty();
    if composed {
        build(&module, &|name| modules.get(name).cloned()).check()?;
    } else if module.manifest.runtime.max_input_tokens.is_some() {
        // The request of a composed run is not known before its steps have ended.
        let request = lower(&module, &input, &LowerOptions::default());
        tokens::admit(&module, &request, fleet)?;
    }
    execute.input = Value::Object(input);
    Ok(execute)
}

fn unused_warning(unused: &[String]) -> Option<Warning> {
    let fields = match unused {
        [] => return None,
        [_] => "field",
        _ => "fields",
    };
    let message = format!(
        "no request of the run contains the input {fields} {}",
        unused.join(", ")
    );
    let mut warning = Warning::new(Code::W1002, message);
    warning.extra.insert(String::from("fields"), json!(unused));
    Some(warning)
}

fn context_warning(left_out: &[String]) -> Option<Warning> {
    if left_out.is_empty() {
        return None;
    }
    let message = format!("the module does not accept the context {}", left_out.join(", "));
    let mut warning = Warning::new(Code::W1001, message);
    warning.extra.insert(String::from("types"), json!(left_out));
    Some(warning)
}

/// Whether the module and the modules it calls have no side effects, so that a rerun is safe.
pub(crate) fn is_safe_to_rerun(module: &Arc<Module>, modules: &Modules) -> bool {
    let harmless = |module: &Module| module.manifest.policies.access("side_effects") == Access::Deny;
    let graph = build(module, &|name| modules.get(name).cloned());
    graph.nodes.values().all(|node| harmless(&node.module))
}
