//! How do I give a program packages?
//!
//! cargo run -p sandbox --example packages
//!
//! It leaves an environment called `example`: sandbox-run env remove example

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use sandbox::{CancelToken, PackageSpec, Request, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;

    // By a name, built once for many programs.
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

    // Without a name: the index is asked the first time, and not again.
    let request = Request::builder("python").packages(["six"]).code(code).build()?;
    print!("{}", sandbox.execute(request)?.stdout);
    Ok(())
}
