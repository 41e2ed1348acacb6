//! Where libstowage lies: STOWAGE_LIB_DIR, else what pkg-config says, else where the linker looks anyway.
use std::process::Command;

fn main() {
    for name in ["STOWAGE_LIB_DIR", "STOWAGE_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let folder = std::env::var("STOWAGE_LIB_DIR").ok().or_else(|| {
        let asked = Command::new("pkg-config").args(["--variable=libdir", "stowage"]).output().ok().filter(|told| told.status.success())?;
        Some(String::from_utf8(asked.stdout).ok()?.trim().to_owned())
    });
    if let Some(folder) = folder {
        println!("cargo:rustc-link-search=native={folder}");
    }
    if std::env::var("STOWAGE_STATIC").map_or(false, |value| value == "1") {
        println!("cargo:rustc-link-lib=static=stowage");
        for name in ["stdc++", "pthread", "dl", "rt", "m"] {
            println!("cargo:rustc-link-lib=dylib={name}");
        }
    } else {
        println!("cargo:rustc-link-lib=dylib=stowage");
    }
}
