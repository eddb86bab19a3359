//! What users see of the library, and what holds for the repository as a whole.

mod build;
mod forms;
mod kernel;
mod kernel_arrays;
mod kernel_imageblocks;
mod kernel_language;
mod kernel_numbers;
mod kernel_parts;
mod kernel_programs;
mod kernel_reports;
mod kernel_textures;
mod kernel_words;
mod macros_of_kernels;
mod programs;
mod shaders;
mod tidy;
mod written_wgsl;
