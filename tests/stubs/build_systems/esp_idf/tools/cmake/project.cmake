# Of ESP-IDF's build: project() takes the component main/, and links it with what calls app_main.
set(idf_folder ${CMAKE_CURRENT_LIST_DIR}/../..)

macro(project name)
  _project(${name} LANGUAGES CXX)
  add_executable(${name} ${idf_folder}/start.cpp)
  target_include_directories(${name} PRIVATE $ENV{TFLM_STAND_IN})
  add_subdirectory(main)
endmacro()

function(idf_component_register)
  cmake_parse_arguments(given "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  if(given_UNPARSED_ARGUMENTS OR NOT given_SRCS)
    message(FATAL_ERROR "idf_component_register(${ARGN})")
  endif()
  list(TRANSFORM given_SRCS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(${PROJECT_NAME} PRIVATE ${given_SRCS})
endfunction()
