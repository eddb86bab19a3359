//! The GPU's driver without Invar: a shader as it stands, through wgpu.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

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
    pub bytes: Vec<u8>,
    pub uniform: bool,
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

    /// Runs an entry point, and gives what its variables hold then.
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
        for (buffer, variable) in started.iter().zip(variables) {
            buffer.map_async(wgpu::MapMode::Read, .., |_| {});
            let wait = PollType::Wait {
                submission_index: None,
                timeout: Some(Duration::from_secs(20)),
            };
            self.device.poll(wait).map_err(|e| e.to_string())?;
            let view = buffer.get_mapped_range(..).map_err(|e| e.to_string())?;
            results.push(view[..variable.bytes.len()].to_vec());
        }
        Ok(results)
    }

    /// Sends a dispatch; gives the buffers that its results are copied to.
    fn start(
        &self,
        text: &str,
        entry: &str,
        overrides: &[(String, f64)],
        groups: [u32; 3],
        variables: &[Bound],
    ) -> Vec<wgpu::Buffer> {
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
        let buffer = |size: usize, usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: size.next_multiple_of(4) as u64,
                usage,
                mapped_at_creation: false,
            })
        };
        let mut buffers = Vec::new();
        for variable in variables {
            let usage = if variable.uniform {
                wgpu::BufferUsages::UNIFORM
            } else {
                wgpu::BufferUsages::STORAGE
            };
            let copies = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
            let made = buffer(variable.bytes.len(), usage | copies);
            let mut bytes = variable.bytes.clone();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            self.queue.write_buffer(&made, 0, &bytes);
            buffers.push(made);
        }
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
                let pairs = variables.iter().zip(&buffers);
                let entries: Vec<_> = pairs
                    .filter(|(v, _)| v.group == group)
                    .map(|(v, buffer)| wgpu::BindGroupEntry {
                        binding: v.binding,
                        resource: buffer.as_entire_binding(),
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
        for (from, variable) in buffers.iter().zip(variables) {
            let to = buffer(variable.bytes.len(), usage);
            encoder.copy_buffer_to_buffer(from, 0, &to, 0, from.size());
            results.push(to);
        }
        self.queue.submit([encoder.finish()]);
        results
    }
}
