//! Text on its way to C and back.
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::path::Path;

use crate::error::{Error, Result, Status};

/// Text in an array of a struct, as the library wrote it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// The text up to its zero byte. Bytes that are not UTF-8, such as the end of a cut name, are left out.
    pub fn as_str(&self) -> &str {
        let bytes = &self.0[..self.0.iter().position(|&byte| byte == 0).unwrap_or(N)];
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
        }
    }
}

impl<const N: usize> std::ops::Deref for Text<N> {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), to)
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), to)
    }
}

impl<const N: usize> AsRef<str> for Text<N> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl<const N: usize> From<Text<N>> for String {
    fn from(text: Text<N>) -> String {
        text.as_str().to_owned()
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> PartialEq<str> for Text<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl<const N: usize> PartialEq<&str> for Text<N> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// A C string for a call.
pub(crate) fn to_c(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(Status::BAD_ARGUMENT, format!("a zero byte in {text:?}")))
}

pub(crate) fn path_to_c(path: &Path) -> Result<CString> {
    to_c(path.to_str().ok_or_else(|| Error::new(Status::BAD_ARGUMENT, format!("{path:?} is no UTF-8")))?)
}

/// None if there is no text.
pub(crate) fn optional(text: Option<&str>) -> Result<Option<CString>> {
    text.map(to_c).transpose()
}

pub(crate) fn optional_path(path: Option<&Path>) -> Result<Option<CString>> {
    path.map(path_to_c).transpose()
}

pub(crate) fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// A string that C returned; "" for a null pointer and for bytes that are not UTF-8. It must live as long as
/// the caller says.
pub(crate) unsafe fn from_c<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    CStr::from_ptr(text).to_str().unwrap_or("")
}
