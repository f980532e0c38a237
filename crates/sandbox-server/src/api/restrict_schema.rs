//! Constraints that the derived schemas cannot express: rules between fields, patterns of names, and the limits of
//! this server.

use sandbox::{Isolation, Protection};
use serde_json::{Value, json};

use crate::policy::Caps;

/// Adds the constraints to the document.
pub(super) fn restrict(document: &mut Value, caps: &Caps, isolations: &[Isolation]) {
    let package = json!({
        "type": "string",
        "pattern": r"^[A-Za-z0-9@][A-Za-z0-9._+*^~<>=!|,\[\]@/-]{0,199}$",
    });
    let schemas = &mut document["components"]["schemas"];
    schemas["NewEnvironment"]["properties"]["packages"]["items"] = package.clone();
    let request = &mut schemas["ExecuteRequest"];
    request["anyOf"] = json!([
        { "required": ["code"], "properties": { "code": { "type": "string" } } },
        { "required": ["files"], "properties": { "files": { "minItems": 1 } } },
        { "required": ["template"], "properties": { "template": { "type": "string" } } },
    ]);
    let fields = &mut request["properties"];
    fields["packages"]["items"] = package;
    for (field, limit) in [
        ("timeout_ms", caps.timeout_ms()),
        ("cpu_time_ms", caps.timeout_ms()),
        ("compile_timeout_ms", caps.timeout_ms()),
        ("memory_limit_mb", caps.memory_mb()),
        ("disk_mb", caps.disk_mb()),
        ("output_limit_kb", caps.output_kb()),
        ("compile_memory_mb", caps.memory_mb()),
        ("pids", caps.pids.into()),
        ("open_files", caps.open_files.into()),
    ] {
        let maximum = &mut fields[field]["maximum"];
        if maximum.as_f64().is_none_or(|default| limit < default) {
            // Whole numbers have no fraction in text.
            *maximum = limit.to_string().parse().expect("a finite number is JSON");
        }
    }
    let names = isolations.iter().map(|isolation| json!(isolation.name()));
    fields["isolation"]["enum"] = names.chain([json!("auto"), Value::Null]).collect();
    let protections: Vec<_> = Protection::ALL.iter().map(|protection| protection.name()).collect();
    fields["allow_missing"]["items"]["enum"] = json!(protections);
    fields["env"]["propertyNames"] = json!({ "pattern": r"^[^=\x00]+$" });
    let label = json!({ "type": "string", "maxLength": 256 });
    fields["labels"]["maxProperties"] = json!(32);
    fields["labels"]["propertyNames"] = label.clone();
    fields["labels"]["additionalProperties"] = label;
}
