//! The backends of sandbox-run, one module each, behind [`sandbox_core::Backend`].

pub mod native;
