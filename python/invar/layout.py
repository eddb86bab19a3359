"""Layout algebra: how threads map to memory, as functions that combine.

A layout is a shape and a stride, written ``(4,8):(8,1)``; it maps coordinates to offsets. Shapes,
strides and coordinates are integers or nested tuples::

    >>> from invar.layout import Layout, make_layout_tv, zipped_divide, composition
    >>> tensor = Layout((256, 512), (512, 1))
    >>> tile, owners = make_layout_tv(Layout((4, 64), (64, 1)), Layout((4, 4), (4, 1)))
    >>> zipped_divide(tensor, tile)
    Layout('((16,256),(16,2)):((512,1),(8192,256))')
    >>> composition(composition(tensor, tile), owners)
    Layout('((64,4),(4,4)):((4,2048),(1,512))')

``Layout.svg()`` draws a layout, and a notebook shows the picture by itself. What the algebra refuses
is a ``LayoutError`` that names the condition that failed.

Absent: the algebra itself, which is the extension's (``crates/layout``), and views of memory by a layout
(``_views``).
"""

from . import _invar

__all__ = [name for name in dir(_invar.layout) if not name.startswith("_")]

globals().update({name: getattr(_invar.layout, name) for name in __all__})
