//! Finds libstowage: in the folder STOWAGE_LIB_DIR, else by pkg-config, else in the linker's own folders.
//! With STOWAGE_STATIC=1 it links libstowage.a, and pkg-config must list the libraries that this one needs.
use std::path::Path;
use std::process::Command;

/// The answer of pkg-config, split into words.
fn pkg_config(arguments: &[&str]) -> Option<Vec<String>> {
    let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_owned());
    let output = Command::new(program)
        .args(arguments)
        .arg("stowage")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.split_whitespace().map(str::to_owned).collect())
}

fn search(folder: &str) {
    println!("cargo:rustc-link-search=native={folder}");
}

fn link_static(words: &[String]) {
    for word in words {
        if let Some(folder) = word.strip_prefix("-L") {
            search(folder);
            // the archive becomes a part of the crate
            println!("cargo:rerun-if-changed={folder}/libstowage.a");
        } else if word == "-lstowage" {
            println!("cargo:rustc-link-lib=static=stowage");
        } else if word == "-pthread" {
            println!("cargo:rustc-link-lib=dylib=pthread");
        } else if let Some(name) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={name}");
        } else if let Some(name) = Path::new(word)
            .file_stem()
            .and_then(|stem| stem.to_str()?.strip_prefix("lib"))
            .filter(|_| word.ends_with(".a"))
        {
            search(&Path::new(word).parent().unwrap_or_else(|| Path::new(".")).to_string_lossy());
            println!("cargo:rustc-link-lib=static={name}");
        }
    }
}

fn main() {
    for name in [
        "STOWAGE_LIB_DIR",
        "STOWAGE_STATIC",
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_LIBDIR",
        "PKG_CONFIG_SYSROOT_DIR",
    ] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("STOWAGE_LIB_DIR").ok();
    if std::env::var("STOWAGE_STATIC").map_or(false, |value| value == "1") {
        match pkg_config(&["--static", "--libs"]) {
            Some(words) => {
                if let Some(folder) = &folder {
                    search(folder); // first
                }
                return link_static(&words);
            }
            None => println!(
                "cargo:warning=STOWAGE_STATIC=1: pkg-config finds no stowage.pc, \
                 which says what libstowage.a needs"
            ),
        }
    }
    match (folder, pkg_config(&["--libs-only-L"])) {
        (Some(folder), _) => search(&folder),
        (None, Some(words)) => words.iter().filter_map(|word| word.strip_prefix("-L")).for_each(search),
        (None, None) => {
            println!("cargo:warning=neither STOWAGE_LIB_DIR nor pkg-config says where libstowage lies");
            // this file never exists, so cargo runs the script at every build
            println!("cargo:rerun-if-changed=looked-for-again");
        }
    }
    println!("cargo:rustc-link-lib=dylib=stowage");
}
