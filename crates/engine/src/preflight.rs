//! Checks before a run starts: whether its module may be invoked, with this input, this context and the
//! available modules. A rejected run starts nothing and makes no upstream request.

use std::sync::Arc;

use module::compose::{build, dependencies};
use module::context;
use module::envelope::ErrorBody;
use module::lower::{LowerOptions, admit_input, lower};
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
    admit_input(&module, &execute.input)?;
    if let Value::Object(input) = &mut execute.input {
        let admitted = context::admit(&module, input)?;
        context::put(input, admitted.context);
        if !admitted.left_out.is_empty() {
            let message = format!(
                "the module does not accept the context {}",
                admitted.left_out.join(", ")
            );
            let mut warning = Warning::new(Code::W1001, message);
            warning
                .extra
                .insert(String::from("types"), json!(admitted.left_out));
            execute.warnings.push(warning);
        }
    }
    let composed = !dependencies(&module).is_empty();
    if composed {
        build(&module, &|name| modules.get(name).cloned()).check()?;
    } else if module.manifest.runtime.max_input_tokens.is_some()
        && let Value::Object(input) = &execute.input
    {
        // The request of a composed run is not known before its steps have ended.
        let request = lower(&module, input, &LowerOptions::default());
        tokens::admit(&module, &request, fleet)?;
    }
    Ok(execute)
}

/// Whether the module and the modules it calls have no side effects, so that a rerun is safe.
pub(crate) fn is_safe_to_rerun(module: &Arc<Module>, modules: &Modules) -> bool {
    let harmless = |module: &Module| module.manifest.policies.access("side_effects") == Access::Deny;
    let graph = build(module, &|name| modules.get(name).cloned());
    graph.nodes.values().all(|node| harmless(&node.module))
}
