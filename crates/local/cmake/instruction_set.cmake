# Included by CMake in the build of llama.cpp, by way of CMAKE_PROJECT_INCLUDE in .cargo/config.toml. Its build script
# switches GGML_NATIVE off unless all Rust code is compiled with `-C target-cpu=native`. With GGML_NATIVE=ON in the
# environment the runtime's kernels use the instructions of this machine; otherwise the binary runs on every machine with
# the portable set (docs/decisions/0079-instruction-set.md).
if(NOT CMAKE_CROSSCOMPILING AND "$ENV{GGML_NATIVE}" STREQUAL "ON")
    set(GGML_NATIVE ON CACHE BOOL "use the instructions of this machine" FORCE)
endif()
