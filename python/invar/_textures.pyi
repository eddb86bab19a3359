# Types of texture parameters for type checkers: an access such as "sample" may stand only in an annotation
# that they know to hold words, so these are `Annotated` by other names.
from typing import Annotated as Texture1D
from typing import Annotated as Texture1DArray
from typing import Annotated as Texture2D
from typing import Annotated as Texture2DArray
from typing import Annotated as Texture3D
from typing import Annotated as TextureBuffer
from typing import Annotated as TextureCube
from typing import Annotated as TextureCubeArray

__all__ = ["Texture1D", "Texture1DArray", "Texture2D", "Texture2DArray", "Texture3D", "TextureBuffer", "TextureCube", "TextureCubeArray"]
