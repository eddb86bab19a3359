"""A traced kernel as text."""

__all__ = ["emit_mlir", "emit_msl"]


def emit_mlir(builder, vec_width=0):
    """The kernel in Invar's text form, which stands where the Enigma DSL has its MLIR."""
    return builder.compiled(vec_width).mlir_source


def emit_msl(builder, vec_width=0):
    """The kernel in the Metal Shading Language."""
    return builder.compiled(vec_width).metal_source
