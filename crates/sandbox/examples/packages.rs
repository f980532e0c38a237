//! Install packages for a program.
//!
//! cargo run -p sandbox --example packages
//!
//! It leaves an environment named `example`. Remove it with: sandbox-run env remove example

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use sandbox::{CancelToken, PackageSpec, Request, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;

    // As a named environment: built once for many programs.
    let packages = PackageSpec::split("six>=1.16,<2")?;
    let environment = sandbox.environments().build(
        "example".parse()?,
        &"python".parse()?,
        &packages,
        &mut |progress| println!("{progress}"),
        &CancelToken::new(),
    )?;
    println!("{} has {}", environment.name, environment.lock.summary());

    let code = "import six; print('six', six.__version__)";
    let request = Request::builder("python").environment("example").code(code).build()?;
    print!("{}", sandbox.execute(request)?.stdout);

    // Without a name: installed on first use, then cached.
    let request = Request::builder("python").packages(["six"]).code(code).build()?;
    print!("{}", sandbox.execute(request)?.stdout);
    Ok(())
}
