# Types of texture parameters for type checkers: an access such as "sample" may stand only in an annotation
# that they know to hold words, so these are `Annotated` by other names.
from typing import Annotated as Depth2D
from typing import Annotated as Depth2DArray
from typing import Annotated as DepthCube
from typing import Annotated as DepthCubeArray
from typing import Annotated as Texture1D
from typing import Annotated as Texture1DArray
from typing import Annotated as Texture2D
from typing import Annotated as Texture2DArray
from typing import Annotated as Texture2DMS
from typing import Annotated as Texture2DMSArray
from typing import Annotated as Texture3D
from typing import Annotated as TextureBuffer
from typing import Annotated as TextureCube
from typing import Annotated as TextureCubeArray

__all__ = [
    "Depth2D",
    "Depth2DArray",
    "DepthCube",
    "DepthCubeArray",
    "Texture1D",
    "Texture1DArray",
    "Texture2D",
    "Texture2DArray",
    "Texture2DMS",
    "Texture2DMSArray",
    "Texture3D",
    "TextureBuffer",
    "TextureCube",
    "TextureCubeArray",
]
