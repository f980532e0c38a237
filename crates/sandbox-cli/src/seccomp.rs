//! `sandbox-run seccomp`: our system-call filter for containers that others run.

use std::io::{self, Write};

use crate::args::SeccompArgs;
use crate::errors::Failure;

pub(crate) fn print(args: &SeccompArgs) -> Result<u8, Failure> {
    let profile = if args.oci { sandbox::seccomp_for_oci() } else { sandbox::seccomp_for_docker() };
    let printed = writeln!(io::stdout().lock(), "{profile:#}");
    printed.map_err(|error| Failure::printing(&error))?;
    Ok(0)
}
