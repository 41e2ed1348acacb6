//! Tensors as they cross the API: DLPack 1.0 (<https://dmlc.github.io/dlpack>, "C API").
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr::{self, NonNull};

use crate::error::{Error, Result, Status};

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLDevice {
    pub device_type: i32,
    pub device_id: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    pub major: u32,
    pub minor: u32,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    pub flags: u64,
    pub dl_tensor: DLTensor,
}

const HOST: DLDevice = DLDevice { device_type: 1, device_id: 0 };
const INT: u8 = 0;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;

/// Types of numbers that a batch may have.
pub trait Number: Copy + private::Sealed {}
impl Number for i32 {}
impl Number for f32 {}

mod private {
    pub trait Sealed {
        const CODE: u8;
    }
    impl Sealed for i32 {
        const CODE: u8 = super::INT;
    }
    impl Sealed for f32 {
        const CODE: u8 = super::FLOAT;
    }
}

/// A compact tensor that borrows a slice.
pub(crate) struct Borrowed<'a> {
    managed: DLManagedTensorVersioned,
    shape: Box<[i64]>,
    _values: PhantomData<&'a ()>,
}

impl<'a> Borrowed<'a> {
    /// The product of `shape` must be the slice's length.
    pub(crate) fn new<T: Number>(values: &'a [T], shape: &[i64]) -> Result<Borrowed<'a>> {
        if shape.iter().try_fold(1i64, |all, &size| all.checked_mul(size)) != i64::try_from(values.len()).ok()
        {
            return Err(Error::new(
                Status::BAD_ARGUMENT,
                format!("{} numbers cannot form a tensor of shape {shape:?}", values.len()),
            ));
        }
        let tensor = DLTensor {
            data: values.as_ptr() as *mut c_void,
            device: HOST,
            ndim: shape.len() as i32,
            dtype: DLDataType { code: T::CODE, bits: 32, lanes: 1 },
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        let managed = DLManagedTensorVersioned {
            major: 1,
            minor: 0,
            manager_ctx: ptr::null_mut(),
            deleter: None,
            flags: 0,
            dl_tensor: tensor,
        };
        Ok(Borrowed { managed, shape: shape.into(), _values: PhantomData })
    }

    /// A pointer for the duration of a call.
    pub(crate) fn pointer(&mut self) -> *const DLManagedTensorVersioned {
        self.managed.dl_tensor.shape = self.shape.as_mut_ptr();
        &self.managed
    }
}

/// The format in which a tensor of a trainer is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DType {
    F32,
    Bf16,
    F16,
}

/// A view of a tensor in a trainer's memory. It borrows the trainer.
#[derive(Debug)]
pub struct View<'a> {
    managed: NonNull<DLManagedTensorVersioned>,
    _trainer: PhantomData<&'a mut ()>,
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        unsafe {
            if let Some(delete) = self.managed.as_ref().deleter {
                delete(self.managed.as_ptr());
            }
        }
    }
}

impl View<'_> {
    /// Takes a tensor that the library exported.
    pub(crate) unsafe fn new(pointer: *mut DLManagedTensorVersioned) -> Result<Self> {
        let managed = NonNull::new(pointer).ok_or_else(|| Error::new(Status::INTERNAL, "no tensor"))?;
        let view = View { managed, _trainer: PhantomData }; // dropping the view deletes the tensor
        let (major, tensor) = (managed.as_ref().major, view.tensor());
        match (major, tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) {
            (1, FLOAT, 32 | 16, 1) | (1, BFLOAT, 16, 1) => Ok(view),
            _ => Err(Error::new(
                Status::UNSUPPORTED,
                format!("a tensor of DLPack {major} and {:?}", tensor.dtype),
            )),
        }
    }

    fn tensor(&self) -> &DLTensor {
        unsafe { &self.managed.as_ref().dl_tensor }
    }

    pub fn shape(&self) -> &[i64] {
        let tensor = self.tensor();
        if tensor.ndim <= 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(tensor.shape, tensor.ndim as usize) }
        }
    }

    pub fn dtype(&self) -> DType {
        match (self.tensor().dtype.code, self.tensor().dtype.bits) {
            (BFLOAT, _) => DType::Bf16,
            (_, 16) => DType::F16,
            _ => DType::F32,
        }
    }

    /// The device in DLPack's numbers: 1 is the CPU, 2 is CUDA.
    pub fn device(&self) -> DLDevice {
        self.tensor().device
    }

    /// The address of the first element, in the device's memory. Elements are contiguous.
    pub fn address(&self) -> *mut c_void {
        self.tensor().data.cast::<u8>().wrapping_add(self.tensor().byte_offset as usize).cast()
    }

    fn of_host<T>(&self) -> Option<&[T]> {
        let count = self.shape().iter().product::<i64>() as usize;
        (self.device().device_type == HOST.device_type)
            .then(|| unsafe { std::slice::from_raw_parts(self.address() as *const T, count) })
    }

    /// Gives the tensor to a reader of DLPack, who has to call its deleter before the trainer ends or is
    /// planned again.
    pub fn into_dlpack(self) -> *mut DLManagedTensorVersioned {
        std::mem::ManuallyDrop::new(self).managed.as_ptr()
    }

    /// The numbers of an fp32 tensor in host memory; else none.
    pub fn as_f32(&self) -> Option<&[f32]> {
        (self.dtype() == DType::F32).then(|| self.of_host()).flatten()
    }

    /// The bits of a bf16 or fp16 tensor in host memory; else none.
    pub fn as_bits16(&self) -> Option<&[u16]> {
        (self.dtype() != DType::F32).then(|| self.of_host()).flatten()
    }
}
