// Arduino compiles a library because a sketch includes its header; that is all it is for.
#pragma once
