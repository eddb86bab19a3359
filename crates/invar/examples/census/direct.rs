//! The GPU's driver without Invar: a shader as it stands, through wgpu.
//!
//! Deliberately absent: textures of depths and of several samples, which a host cannot fill by copies.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use invar::{PixelFormat, TextureShape};
use invar_ir::texture::{
    Address, Compare, Coordinates, Dimension, Filter, Mip, Sampler, TextureType,
};
use wgpu::PollType;

/// A GPU that is open.
pub struct Driver {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// What a variable of the host holds.
pub struct Bound {
    pub group: u32,
    pub binding: u32,
    pub held: Held,
}

/// What it is.
pub enum Held {
    /// Memory, of a uniform or of storage.
    Buffer { bytes: Vec<u8>, uniform: bool },
    /// A texture, whose texels lie as [`TextureShape`] says.
    Texture {
        ty: TextureType,
        shape: TextureShape,
        bytes: Vec<u8>,
    },
    /// How textures are sampled.
    Sampler(Sampler),
}

/// What is bound, and what it is read back from.
enum Made {
    Buffer(wgpu::Buffer),
    Texture(wgpu::Texture, TextureShape),
    Sampler(wgpu::Sampler),
}

/// Bytes that a row of texels takes in a buffer that a texture is copied to.
fn row_bytes(shape: TextureShape, level: u32) -> u32 {
    let [width, ..] = shape.level_extents(level);
    let bytes = width * shape.format.texel_bytes() as u32;
    bytes.next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT)
}

/// Bytes of a buffer that all levels of a texture are copied to, one behind the other.
fn copied_bytes(shape: TextureShape) -> u32 {
    (0..shape.levels)
        .map(|level| {
            let [_, height, depth] = shape.level_extents(level);
            row_bytes(shape, level) * height * depth
        })
        .sum()
}

/// The texels in such a buffer, as they lie in a shape.
fn packed(shape: TextureShape, copied: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut from = 0;
    for level in 0..shape.levels {
        let [width, height, depth] = shape.level_extents(level);
        let row = width as usize * shape.format.texel_bytes() as usize;
        for _ in 0..height * depth {
            bytes.extend_from_slice(&copied[from..from + row]);
            from += row_bytes(shape, level) as usize;
        }
    }
    bytes
}

fn extent(shape: TextureShape, level: u32) -> wgpu::Extent3d {
    let [width, height, depth] = shape.level_extents(level);
    wgpu::Extent3d {
        width,
        height,
        depth_or_array_layers: depth,
    }
}

fn format_of(format: PixelFormat) -> Result<wgpu::TextureFormat, String> {
    use wgpu::TextureFormat as T;
    Ok(match format {
        PixelFormat::R8Unorm => T::R8Unorm,
        PixelFormat::R8Snorm => T::R8Snorm,
        PixelFormat::R8Uint => T::R8Uint,
        PixelFormat::R8Sint => T::R8Sint,
        PixelFormat::Rg8Unorm => T::Rg8Unorm,
        PixelFormat::Rg8Uint => T::Rg8Uint,
        PixelFormat::Rg8Sint => T::Rg8Sint,
        PixelFormat::Rgba8Unorm => T::Rgba8Unorm,
        PixelFormat::Rgba8UnormSrgb => T::Rgba8UnormSrgb,
        PixelFormat::Rgba8Snorm => T::Rgba8Snorm,
        PixelFormat::Rgba8Uint => T::Rgba8Uint,
        PixelFormat::Rgba8Sint => T::Rgba8Sint,
        PixelFormat::Bgra8Unorm => T::Bgra8Unorm,
        PixelFormat::R16Uint => T::R16Uint,
        PixelFormat::R16Sint => T::R16Sint,
        PixelFormat::R16Float => T::R16Float,
        PixelFormat::Rg16Float => T::Rg16Float,
        PixelFormat::Rgba16Uint => T::Rgba16Uint,
        PixelFormat::Rgba16Sint => T::Rgba16Sint,
        PixelFormat::Rgba16Float => T::Rgba16Float,
        PixelFormat::R32Uint => T::R32Uint,
        PixelFormat::R32Sint => T::R32Sint,
        PixelFormat::R32Float => T::R32Float,
        PixelFormat::Rg32Uint => T::Rg32Uint,
        PixelFormat::Rg32Sint => T::Rg32Sint,
        PixelFormat::Rg32Float => T::Rg32Float,
        PixelFormat::Rgba32Uint => T::Rgba32Uint,
        PixelFormat::Rgba32Sint => T::Rgba32Sint,
        PixelFormat::Rgba32Float => T::Rgba32Float,
        PixelFormat::Rgb10A2Unorm => T::Rgb10a2Unorm,
        other => return Err(format!("textures of {} are not copied here", other.name())),
    })
}

fn sampler_of(sampler: Sampler) -> Result<wgpu::SamplerDescriptor<'static>, String> {
    if sampler.coordinates == Coordinates::Pixel {
        return Err("no sampler of WebGPU counts texels".to_string());
    }
    let address = match sampler.address {
        Address::ClampToEdge => wgpu::AddressMode::ClampToEdge,
        Address::Repeat => wgpu::AddressMode::Repeat,
        Address::MirroredRepeat => wgpu::AddressMode::MirrorRepeat,
        Address::ClampToZero | Address::ClampToBorder => {
            return Err("no sampler of WebGPU has a border".to_string());
        }
    };
    let filter = match sampler.filter {
        Filter::Nearest => wgpu::FilterMode::Nearest,
        Filter::Linear => wgpu::FilterMode::Linear,
    };
    let (mipmap_filter, most) = match sampler.mip {
        Mip::None => (wgpu::MipmapFilterMode::Nearest, 0.0),
        Mip::Nearest => (wgpu::MipmapFilterMode::Nearest, 32.0),
        Mip::Linear => (wgpu::MipmapFilterMode::Linear, 32.0),
    };
    let [least, largest] = sampler.lod.limits();
    Ok(wgpu::SamplerDescriptor {
        address_mode_u: address,
        address_mode_v: address,
        address_mode_w: address,
        mag_filter: filter,
        min_filter: filter,
        mipmap_filter,
        lod_min_clamp: least.min(most),
        lod_max_clamp: largest.min(most),
        compare: sampler.compare.map(|compare| match compare {
            Compare::Never => wgpu::CompareFunction::Never,
            Compare::Less => wgpu::CompareFunction::Less,
            Compare::LessEqual => wgpu::CompareFunction::LessEqual,
            Compare::Greater => wgpu::CompareFunction::Greater,
            Compare::GreaterEqual => wgpu::CompareFunction::GreaterEqual,
            Compare::Equal => wgpu::CompareFunction::Equal,
            Compare::NotEqual => wgpu::CompareFunction::NotEqual,
            Compare::Always => wgpu::CompareFunction::Always,
        }),
        ..wgpu::SamplerDescriptor::default()
    })
}

fn view_of(ty: TextureType) -> Result<wgpu::TextureViewDimension, String> {
    use wgpu::TextureViewDimension as V;
    match ty.dimension {
        _ if ty.is_depth => Err("textures of depths are not copied here".to_string()),
        Dimension::D1 => Ok(V::D1),
        Dimension::D2 => Ok(V::D2),
        Dimension::D2Array => Ok(V::D2Array),
        Dimension::D3 => Ok(V::D3),
        Dimension::Cube => Ok(V::Cube),
        Dimension::CubeArray => Ok(V::CubeArray),
        Dimension::D2Ms | Dimension::D2MsArray => {
            Err("textures of several samples are not copied here".to_string())
        }
        Dimension::D1Array | Dimension::Buffer => {
            Err(format!("WGSL has no {}", ty.dimension.name()))
        }
    }
}

fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// The text without what naga refuses though it needs it not; no place moves.
fn as_naga_knows(text: &str) -> String {
    let mut out = text.to_string();
    for directive in ["enable subgroups;", "enable subgroups_f16;"] {
        out = out.replace(directive, &" ".repeat(directive.len()));
    }
    out
}

impl Driver {
    /// The first GPU that wgpu finds.
    pub fn open() -> Result<Driver, String> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = wait_for(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
        let adapter = adapter.map_err(|e| e.to_string())?;
        let opened = adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: adapter.features() & !wgpu::Features::all_experimental_mask(),
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        });
        let (device, queue) = wait_for(opened).map_err(|e| e.to_string())?;
        Ok(Driver { device, queue })
    }

    /// Runs an entry point, and gives what its variables hold then; of a sampler nothing.
    pub fn run(
        &self,
        text: &str,
        entry: &str,
        overrides: &[(String, f64)],
        groups: [u32; 3],
        variables: &[Bound],
    ) -> Result<Vec<Vec<u8>>, String> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let started = self.start(text, entry, overrides, groups, variables);
        if let Some(error) = wait_for(scope.pop()) {
            return Err(error.to_string());
        }
        let mut results = Vec::new();
        for (buffer, variable) in started?.iter().zip(variables) {
            let Some(buffer) = buffer else {
                results.push(Vec::new());
                continue;
            };
            buffer.map_async(wgpu::MapMode::Read, .., |_| {});
            let wait = PollType::Wait {
                submission_index: None,
                timeout: Some(Duration::from_secs(20)),
            };
            self.device.poll(wait).map_err(|e| e.to_string())?;
            let view = buffer.get_mapped_range(..).map_err(|e| e.to_string())?;
            results.push(match &variable.held {
                Held::Buffer { bytes, .. } => view[..bytes.len()].to_vec(),
                Held::Texture { shape, .. } => packed(*shape, &view),
                Held::Sampler(_) => Vec::new(),
            });
        }
        Ok(results)
    }

    /// A buffer of so many bytes.
    fn buffer(&self, size: usize, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: size.next_multiple_of(4) as u64,
            usage,
            mapped_at_creation: false,
        })
    }

    /// A texture with these texels.
    fn texture(
        &self,
        ty: TextureType,
        shape: TextureShape,
        bytes: &[u8],
    ) -> Result<wgpu::Texture, String> {
        let can_count = matches!(shape.format, PixelFormat::R32Uint | PixelFormat::R32Sint)
            && self
                .device
                .features()
                .contains(wgpu::Features::TEXTURE_ATOMIC);
        let usage = match (ty.access.memory().can_write(), can_count) {
            (true, true) => {
                wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::STORAGE_ATOMIC
            }
            (true, false) => wgpu::TextureUsages::STORAGE_BINDING,
            (false, _) => wgpu::TextureUsages::TEXTURE_BINDING,
        };
        let copies = wgpu::TextureUsages::COPY_SRC | wgpu::TextureUsages::COPY_DST;
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: extent(shape, 0),
            mip_level_count: shape.levels,
            sample_count: 1,
            dimension: match view_of(ty)? {
                wgpu::TextureViewDimension::D1 => wgpu::TextureDimension::D1,
                wgpu::TextureViewDimension::D3 => wgpu::TextureDimension::D3,
                _rows_and_columns => wgpu::TextureDimension::D2,
            },
            format: format_of(shape.format)?,
            usage: usage | copies,
            view_formats: &[],
        });
        for level in 0..shape.levels {
            let [width, height, _] = shape.level_extents(level);
            let texel = shape.format.texel_bytes();
            let start = (shape.level_start(level) * texel) as usize;
            let layout = wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(width * texel as u32),
                rows_per_image: Some(height),
            };
            let whole = wgpu::TexelCopyTextureInfo {
                texture: &texture,
                mip_level: level,
                origin: wgpu::Origin3d::ZERO,
                aspect: wgpu::TextureAspect::All,
            };
            self.queue
                .write_texture(whole, &bytes[start..], layout, extent(shape, level));
        }
        Ok(texture)
    }

    fn made(&self, held: &Held) -> Result<Made, String> {
        Ok(match held {
            Held::Buffer { bytes, uniform } => {
                let usage = if *uniform {
                    wgpu::BufferUsages::UNIFORM
                } else {
                    wgpu::BufferUsages::STORAGE
                };
                let copies = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
                let made = self.buffer(bytes.len(), usage | copies);
                let mut bytes = bytes.clone();
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                self.queue.write_buffer(&made, 0, &bytes);
                Made::Buffer(made)
            }
            Held::Texture { ty, shape, bytes } => {
                Made::Texture(self.texture(*ty, *shape, bytes)?, *shape)
            }
            Held::Sampler(sampler) => {
                Made::Sampler(self.device.create_sampler(&sampler_of(*sampler)?))
            }
        })
    }

    /// Sends a dispatch; gives the buffers that its results are copied to.
    fn start(
        &self,
        text: &str,
        entry: &str,
        overrides: &[(String, f64)],
        groups: [u32; 3],
        variables: &[Bound],
    ) -> Result<Vec<Option<wgpu::Buffer>>, String> {
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(as_naga_knows(text).into()),
            });
        let constants: Vec<(&str, f64)> = overrides.iter().map(|(n, v)| (&**n, *v)).collect();
        let pipeline = self
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some(entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    constants: &constants,
                    ..wgpu::PipelineCompilationOptions::default()
                },
                cache: None,
            });
        let made = variables.iter().map(|v| self.made(&v.held));
        let made: Vec<Made> = made.collect::<Result<_, _>>()?;
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            let mut numbers: Vec<u32> = variables.iter().map(|v| v.group).collect();
            numbers.sort_unstable();
            numbers.dedup();
            for group in numbers {
                let views: Vec<Option<wgpu::TextureView>> = variables
                    .iter()
                    .zip(&made)
                    .map(|(variable, made)| view(&variable.held, made))
                    .collect::<Result<_, _>>()?;
                let all = variables.iter().zip(made.iter().zip(&views));
                let entries: Vec<_> = all
                    .filter(|(v, _)| v.group == group)
                    .map(|(v, bound)| wgpu::BindGroupEntry {
                        binding: v.binding,
                        resource: match bound {
                            (Made::Buffer(buffer), _) => buffer.as_entire_binding(),
                            (Made::Sampler(sampler), _) => wgpu::BindingResource::Sampler(sampler),
                            (Made::Texture(..), view) => wgpu::BindingResource::TextureView(
                                view.as_ref().expect("a texture has one"),
                            ),
                        },
                    })
                    .collect();
                let bound = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &pipeline.get_bind_group_layout(group),
                    entries: &entries,
                });
                pass.set_bind_group(group, &bound, &[]);
            }
            pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
        }
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let mut results = Vec::new();
        for made in &made {
            results.push(match made {
                Made::Buffer(from) => {
                    let to = self.buffer(from.size() as usize, usage);
                    encoder.copy_buffer_to_buffer(from, 0, &to, 0, from.size());
                    Some(to)
                }
                Made::Texture(from, shape) => {
                    let to = self.buffer(copied_bytes(*shape) as usize, usage);
                    copy(&mut encoder, from, *shape, &to);
                    Some(to)
                }
                Made::Sampler(_) => None,
            });
        }
        self.queue.submit([encoder.finish()]);
        Ok(results)
    }
}

/// How a texture is bound: one that is stored to by its first level.
fn view(held: &Held, made: &Made) -> Result<Option<wgpu::TextureView>, String> {
    let (Held::Texture { ty, .. }, Made::Texture(texture, _)) = (held, made) else {
        return Ok(None);
    };
    let stores = ty.access.memory().can_write();
    Ok(Some(texture.create_view(&wgpu::TextureViewDescriptor {
        dimension: Some(view_of(*ty)?),
        mip_level_count: stores.then_some(1),
        ..wgpu::TextureViewDescriptor::default()
    })))
}

/// Copies all levels of a texture to a buffer.
fn copy(
    encoder: &mut wgpu::CommandEncoder,
    from: &wgpu::Texture,
    shape: TextureShape,
    to: &wgpu::Buffer,
) {
    let mut offset = 0;
    for level in 0..shape.levels {
        let [_, height, depth] = shape.level_extents(level);
        let row = row_bytes(shape, level);
        encoder.copy_texture_to_buffer(
            wgpu::TexelCopyTextureInfo {
                texture: from,
                mip_level: level,
                origin: wgpu::Origin3d::ZERO,
                aspect: wgpu::TextureAspect::All,
            },
            wgpu::TexelCopyBufferInfo {
                buffer: to,
                layout: wgpu::TexelCopyBufferLayout {
                    offset,
                    bytes_per_row: Some(row),
                    rows_per_image: Some(height),
                },
            },
            extent(shape, level),
        );
        offset += u64::from(row * height * depth);
    }
}
