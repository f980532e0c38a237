//! Schemas of query parameters.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The time to wait: a boolean, or seconds.
pub(super) struct WaitParameter;

impl PartialSchema for WaitParameter {
    fn schema() -> RefOr<Schema> {
        let flag = ObjectBuilder::new().schema_type(Type::Boolean);
        let seconds = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0));
        OneOfBuilder::new().item(flag).item(seconds).into()
    }
}

impl ToSchema for WaitParameter {}

/// Label filters, each as `NAME:VALUE`.
pub(super) struct LabelParameter;

impl PartialSchema for LabelParameter {
    fn schema() -> RefOr<Schema> {
        let label = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[^:]+:"));
        ArrayBuilder::new().items(label).into()
    }
}

impl ToSchema for LabelParameter {}
