//! Compiles FASTER's C++ sources, which the package `libfaster-sys` carries, and the shim before them.
//!
//! *Useful for* the sources as they were published. *Not useful for* the package's own build, which
//! would need CMake, libclang, libaio and oneTBB.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that carries the sources; its manifest locks its version.
const PACKAGE: &str = "libfaster-sys";
/// Its folder of C++ sources.
const SOURCES: &str = "FASTER/cc/src";
/// The sources that are not headers, of those that a store needs.
const UNITS: [&str; 4] =
    ["core/address.cc", "core/lss_allocator.cc", "core/thread.cc", "environment/file_linux.cc"];

fn main() {
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-changed=Cargo.lock");
    let sources = match sources() {
        Ok(sources) => sources,
        Err(what) => {
            println!("cargo::error={what}");
            return;
        }
    };
    if !Path::new("/usr/include/uuid/uuid.h").exists() {
        println!("cargo::warning=uuid/uuid.h is not in /usr/include: apt install g++ uuid-dev");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        // As FASTER's own build, without its assertions.
        .opt_level(3)
        .define("NDEBUG", None)
        .flag("-fpermissive")
        .flag("-include")
        .flag("cpp/huge_pages.h")
        .include("cpp/include")
        .include(&sources)
        .files(UNITS.map(|unit| sources.join(unit)))
        .file("cpp/shim.cc")
        .warnings(false)
        .compile("faster");
    // Apart: it must call the allocator that the header replaces.
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(3)
        .file("cpp/huge_pages.cc")
        .compile("huge_pages");
    println!("cargo::rustc-link-lib=uuid");
    println!("cargo::rustc-link-lib=pthread");
}

/// The folder of FASTER's sources, where cargo has unpacked them.
fn sources() -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Cargo fetches no package of which no target is built, unless it is asked about all.
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cargo metadata does not start: {error}"))?;
    let next = "run `cargo fetch --locked` in bench-vs/faster, then build again";
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        return Err(format!("FASTER's sources are not here ({last}): {next}"));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata answers no JSON: {error}"))?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == PACKAGE)
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or_else(|| format!("{PACKAGE} is not among the packages: {next}"))?;
    let sources = Path::new(manifest).with_file_name(SOURCES);
    if !sources.join("core/faster.h").exists() {
        return Err(format!("{} has no FASTER: {next}", sources.display()));
    }
    Ok(sources)
}
