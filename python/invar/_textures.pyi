# Types of texture parameters for type checkers: an access such as "sample" may stand only in an annotation
# that they know to hold words, so these are `Annotated` by other names.
from typing import Annotated as Texture1D
from typing import Annotated as Texture2D
from typing import Annotated as Texture2DArray
from typing import Annotated as Texture3D

__all__ = ["Texture1D", "Texture2D", "Texture2DArray", "Texture3D"]
