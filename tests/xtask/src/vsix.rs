// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask vsix`: the extension for VS Code as a file that `code --install-extension` takes: a ZIP archive with the
//! extension's files and a manifest.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

/// The extension's files, below editors/vscode.
const FILES: [&str; 5] =
    ["package.json", "extension.js", "language-configuration.json", "syntaxes/systemtap.tmLanguage.json", "README.md"];

const TYPES: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension=".json" ContentType="application/json"/><Default Extension=".js" ContentType="application/javascript"/><Default Extension=".md" ContentType="text/markdown"/><Default Extension=".txt" ContentType="text/plain"/><Default Extension=".vsixmanifest" ContentType="text/xml"/></Types>
"#;

/// Writes the package of the VS Code extension.
pub fn run(root: &Path) -> Result<ExitCode> {
    let directory = root.join("target/packages");
    std::fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    println!("{}", write(root, &directory)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the package; its path.
pub fn write(root: &Path, directory: &Path) -> Result<PathBuf> {
    let source = root.join("editors/vscode");
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("reading {}", path.display()));
    let package: Value = serde_json::from_slice(&read(&source.join("package.json"))?).context("package.json")?;
    let mut zip = Zip::default();
    zip.add("extension.vsixmanifest", manifest(&package).as_bytes())?;
    zip.add("[Content_Types].xml", TYPES.as_bytes())?;
    for name in FILES {
        zip.add(&format!("extension/{name}"), &read(&source.join(name))?)?;
    }
    zip.add("extension/LICENSE.txt", &read(&root.join("LICENSE"))?)?;
    let field = |name: &str| package[name].as_str().unwrap_or_default().to_string();
    let path = directory.join(format!("{}-{}.vsix", field("name"), field("version")));
    std::fs::write(&path, zip.finish()?).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

fn manifest(package: &Value) -> String {
    let field = |name: &str| package[name].as_str().unwrap_or_default().replace('&', "&amp;").replace('<', "&lt;");
    let engine = package["engines"]["vscode"].as_str().unwrap_or_default().replace('<', "&lt;");
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="{}" Version="{}" Publisher="{}"/>
    <DisplayName>{}</DisplayName>
    <Description xml:space="preserve">{}</Description>
    <Tags>systemtap,__ext_stp,__ext_stpm</Tags>
    <Categories>Programming Languages,Linters,Formatters</Categories>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value="{engine}"/><Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/></Properties>
    <License>extension/LICENSE.txt</License>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
"#,
        field("name"),
        field("version"),
        field("publisher"),
        field("displayName"),
        field("description")
    )
}

/// A ZIP archive (APPNOTE.TXT of PKWARE): files as they are, without times, so that the same files give the same archive.
#[derive(Default)]
struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

/// 1 January 1980, the first day that there is.
const DAY: u16 = 0x21;
/// The name is UTF-8.
const UTF_8: u16 = 1 << 11;

impl Zip {
    fn add(&mut self, name: &str, contents: &[u8]) -> Result<()> {
        let offset = u32::try_from(self.bytes.len())?;
        let (length, name_length) = (u32::try_from(contents.len())?, u16::try_from(name.len())?);
        // Version, flags, method, time, day, checksum, both lengths, lengths of the name and of further fields.
        let mut header = Vec::new();
        [20, UTF_8, 0, 0, DAY].iter().for_each(|field: &u16| header.extend(field.to_le_bytes()));
        [crc32fast::hash(contents), length, length].iter().for_each(|field| header.extend(field.to_le_bytes()));
        [name_length, 0].iter().for_each(|field| header.extend(field.to_le_bytes()));
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&header);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(contents);
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(20u16.to_le_bytes());
        self.directory.extend(&header);
        // Comment, disk and attributes: none.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        let (start, length) = (u32::try_from(self.bytes.len())?, u32::try_from(self.directory.len())?);
        self.bytes.append(&mut self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        [self.count, self.count].iter().for_each(|count| self.bytes.extend(count.to_le_bytes()));
        [length, start].iter().for_each(|field| self.bytes.extend(field.to_le_bytes()));
        self.bytes.extend([0, 0]);
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            match entry.path().is_dir() {
                true => files_below(&entry.path(), found),
                false => found.push(entry.path()),
            }
        }
    }

    #[test]
    fn every_file_is_packaged_and_readable() {
        let root = crate::root();
        let mut files = Vec::new();
        files_below(&root.join("editors/vscode"), &mut files);
        assert_eq!(files.len(), FILES.len());
        let directory = tempfile::tempdir().expect("a directory");
        let path = write(&root, directory.path()).expect("written");
        // An independent reader: Python's, which checks sums and lengths.
        let script = "import sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print('\\n'.join(z.namelist()))";
        let output = std::process::Command::new("python3").args(["-c", script]).arg(&path).output();
        let Ok(output) = output else { return println!("skipped: no python3") };
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(names.contains("extension/extension.js") && names.contains("extension.vsixmanifest"), "{names}");
    }

    #[test]
    fn files_of_the_manifest_exist() {
        let root = crate::root().join("editors/vscode");
        let package: Value =
            serde_json::from_slice(&std::fs::read(root.join("package.json")).expect("a file")).expect("JSON");
        let grammar = &package["contributes"]["grammars"][0];
        let language = &package["contributes"]["languages"][0];
        for name in [&package["main"], &grammar["path"], &language["configuration"]] {
            assert!(root.join(name.as_str().expect("a text")).is_file(), "{name}");
        }
        assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    }
}
