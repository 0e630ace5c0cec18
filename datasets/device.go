package datasets

// DeviceKey is the key under which a timeline's file metadata has the name of the
// first GPU that it was recorded on, as its driver gives it.
const DeviceKey = "glmbatch.device"

// Device returns the name of the GPU that an importer found, or "".
func (r *SpanReader) Device() string {
	name, _ := r.source.metadata(DeviceKey)
	return name
}
