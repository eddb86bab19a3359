"""The names of the Enigma DSL's tracer: values, tensors, control flow, functions, and the builder."""

from ._builder import KernelBuilder, get_builder
from ._control_flow import Carry, for_range, if_, while_
from ._errors import EnigmaError
from ._functions import *
from ._functions import where as select
from ._memory import IRValue, Pipeline, RegisterTensor, Tensor, pipeline, register_tensor
from .typing import parse_vec_dtype
